/** Makes files durable. */
import { open } from 'node:fs/promises'

/** From here on, entries created, renamed or removed in the folder survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
	if (process.platform === 'win32') return // a folder cannot be opened there
	await using folder = await open(path, 'r')
	await folder.sync()
}
