/** The key files of a home. They are few and small, and must be of the same moment as the database. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../errors.ts'
import { isMemberPath } from './manifest.ts'

const maxKeys = 100
const maxKeyBytes = 64 * 1024

/** Keyed by path in the home, such as `keys/vault.key`. Links and folders are omitted. */
export async function readKeys(home: string): Promise<Map<string, Buffer>> {
	const keys = new Map<string, Buffer>()
	const entries = await readdir(join(home, 'keys'), { withFileTypes: true }).catch(absent)
	for (const entry of (entries ?? []).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
		const path = `keys/${entry.name}`
		if (!entry.isFile() || !isMemberPath(path)) continue
		const file = join(home, path)
		const found = await stat(file).catch(absent)
		if (!found) continue
		if (keys.size === maxKeys || found.size > maxKeyBytes)
			throw new Fault(
				'backup_failed',
				`keys/ of the home contains ${entry.name}, which is not a key; move it elsewhere`,
			)
		const bytes = await readFile(file).catch(absent)
		if (bytes) keys.set(path, bytes)
	}
	return keys
}

/** Whether the vault's key is among these files of keys/. `.next`: the key is being changed. */
export function holdsVaultKey(names: readonly string[]): boolean {
	return names.includes('vault.key') || names.includes('vault.key.next')
}

function absent(error: NodeJS.ErrnoException): undefined {
	if (error.code !== 'ENOENT') throw error
}
