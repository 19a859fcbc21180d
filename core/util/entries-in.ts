import { readdirSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Everything below a folder, as paths relative to it. Links are followed; a folder that is reached several times is listed once.
 * `enters`: whether to list a folder, by its relative and its real path. Otherwise the folder itself is omitted too.
 */
export function* entriesIn(folder: string, enters: (path: string, real: string) => boolean): Generator<string> {
	const seen = new Set([realpathSync(folder)])
	const waiting = ['']
	for (let below = waiting.pop(); below !== undefined; below = waiting.pop()) {
		for (const name of readdirSync(join(folder, below))) {
			const path = join(below, name)
			if (!isFolder(join(folder, path))) {
				yield path
				continue
			}
			const real = realpathSync(join(folder, path))
			if (seen.has(real) || !enters(path, real)) continue
			seen.add(real)
			yield path
			waiting.push(path)
		}
	}
}

/** False for a broken link, too. */
function isFolder(path: string): boolean {
	try {
		return statSync(path).isDirectory()
	} catch {
		return false
	}
}
