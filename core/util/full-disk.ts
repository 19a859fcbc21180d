/** Whether an operation failed because the disk, or this user's share of it, is full. */
export function isFullDisk(error: unknown): boolean {
	return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException | undefined)?.code ?? '')
}
