"""Random draws of attributes: samplers, sampling designs and their segment trees. No module here sees a value."""
