// MediaTools
