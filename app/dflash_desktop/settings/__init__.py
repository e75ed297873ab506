"""What the person chose once and for all: declared, stored, migrated. Imports base only."""
