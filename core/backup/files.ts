/** What makes files durable. */
import { open } from 'node:fs/promises'

/** What was made, renamed or removed in the folder survives a power cut from here on. */
export async function syncFolder(path: string): Promise<void> {
	if (process.platform === 'win32') return // a folder cannot be opened there
	await using folder = await open(path, 'r')
	await folder.sync()
}
