"""DistilBERT (Sanh et al. 2019): a student of half its teacher's layers."""
