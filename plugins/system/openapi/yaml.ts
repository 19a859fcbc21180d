import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Document } from './document.ts'

/** Converts the document to YAML, path by path: as a whole it would block the event loop. */
export async function yamlOf({ paths, components, ...head }: Document): Promise<string> {
	const { stringify } = await import('yaml')
	const write = (value: unknown): string => stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 })
	const parts = [write(head)]
	const section = async (name: string, entries: [string, unknown][], depth: string): Promise<void> => {
		parts.push(`${depth.slice(2)}${name}:\n`)
		for (const [key, value] of entries) {
			parts.push(write({ [key]: value }).replaceAll(/^(?=.)/gm, depth))
			await nextTurn()
		}
	}
	await section('paths', Object.entries(paths), '  ')
	parts.push('components:\n')
	for (const [name, group] of Object.entries(components)) await section(name, Object.entries(group), '    ')
	return parts.join('')
}
