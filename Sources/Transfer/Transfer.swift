// Transfer
