/** Functions that the process provides to globals.ts and urls.ts: operations on text that JavaScript itself lacks. */
import { randomBytes, randomUUID } from 'node:crypto'

export type Tool = (
	name: 'url' | 'url_set' | 'params' | 'params_text' | 'random' | 'uuid' | 'utf8' | 'btoa' | 'atob',
	a: string,
	b: string,
	c: string,
) => string

/** For longer texts the result is ''. */
const MAX_LENGTH = 8 * 1024 * 1024
const MAX_RANDOM_BYTES = 65_536

const settable = [
	'href',
	'protocol',
	'username',
	'password',
	'host',
	'hostname',
	'port',
	'pathname',
	'search',
	'hash',
] as const
const parts = [...settable, 'origin'] as const

/** A `Tool`. Accepts any values from the isolate. Never throws; returns '' for invalid arguments. */
export function hostTool(name: unknown, a: unknown, b: unknown, c: unknown): string {
	if (typeof a !== 'string' || typeof b !== 'string' || typeof c !== 'string') return ''
	if (a.length + b.length + c.length > MAX_LENGTH) return ''
	switch (name) {
		case 'url':
			return textOf(URL.parse(a, b === '' ? undefined : b))
		case 'url_set': {
			const url = URL.parse(a)
			const part = settable.find((one) => one === b)
			if (!url || !part) return ''
			try {
				url[part] = c
			} catch {
				return '' // only `href` throws
			}
			return textOf(url)
		}
		case 'params':
			return JSON.stringify([...new URLSearchParams(a)])
		case 'params_text':
			try {
				return new URLSearchParams(JSON.parse(a) as [string, string][]).toString()
			} catch {
				return ''
			}
		case 'random': {
			const count = Number(a)
			return Number.isInteger(count) && count >= 0 && count <= MAX_RANDOM_BYTES
				? randomBytes(count).toString('latin1')
				: ''
		}
		case 'uuid':
			return randomUUID()
		case 'utf8':
			return new TextDecoder().decode(Buffer.from(a, 'latin1'))
		case 'btoa':
		case 'atob':
			try {
				return name === 'btoa' ? btoa(a) : atob(a)
			} catch {
				return ''
			}
		default:
			return ''
	}
}

function textOf(url: URL | null): string {
	return url ? JSON.stringify(Object.fromEntries(parts.map((part) => [part, url[part]]))) : ''
}
