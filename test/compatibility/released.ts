/**
 * The surface of the last release, `released.json.gz`. `node test/compatibility/released.ts` replaces it by that of this tree, and
 * empties accepted.json: a part of `npm run release`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Accepted } from './accepted.ts'
import { surfaceOfTree } from './surface.ts'
import type { Surface } from './surface.ts'

const file = new URL('released.json.gz', import.meta.url)
const acceptedFile = new URL('accepted.json', import.meta.url)

export function releasedSurface(): Surface {
	return JSON.parse(gunzipSync(readFileSync(file)).toString()) as Surface
}

export function acceptedBreaks(): Accepted {
	return JSON.parse(readFileSync(acceptedFile, 'utf8')) as Accepted
}

if (import.meta.main) {
	const surface = await surfaceOfTree()
	writeFileSync(file, gzipSync(JSON.stringify(surface), { level: 9 }))
	writeFileSync(acceptedFile, `${JSON.stringify({ listed: {}, harmless: {} } satisfies Accepted)}\n`)
	process.stdout.write(`test/compatibility has the surface of ${surface.version}\n`)
}
