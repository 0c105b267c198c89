"""Other trainers, with augmentation: each is imported only when it is asked for."""
