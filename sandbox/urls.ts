/**
 * `URL` and `URLSearchParams` of the WHATWG standard. Node parses and serializes them outside the isolate; this file has the other
 * methods that programs use. Evaluated inside the isolate like globals.ts, with the same rules.
 */
import type { Tool } from './host-tools.ts'

export function addUrls(tool: Tool): void {
	const add = (name: string, value: unknown): void => {
		Object.defineProperty(globalThis, name, { value, writable: true, configurable: true })
	}
	class URLSearchParams {
		#pairs: [string, string][] = []
		#changed: ((text: string) => void) | undefined
		constructor(given: unknown = '', changed?: (text: string) => void) {
			if (typeof given === 'object' && given !== null) {
				const pairs =
					Symbol.iterator in given ? Array.from(given as Iterable<[unknown, unknown]>) : Object.entries(given)
				for (const [name, value] of pairs) this.#pairs.push([String(name), String(value)])
			} else this.#pairs = JSON.parse(tool('params', String(given), '', '')) as [string, string][]
			this.#changed = changed
		}
		get size(): number {
			return this.#pairs.length
		}
		get(name: unknown): string | null {
			return this.#pairs.find(([one]) => one === String(name))?.[1] ?? null
		}
		getAll(name: unknown): string[] {
			return this.#pairs.filter(([one]) => one === String(name)).map(([, value]) => value)
		}
		has(name: unknown): boolean {
			return this.get(name) !== null
		}
		append(name: unknown, value: unknown): void {
			this.#set([...this.#pairs, [String(name), String(value)]])
		}
		set(name: unknown, value: unknown): void {
			const at = this.#pairs.findIndex(([one]) => one === String(name))
			const rest = this.#pairs.filter(([one], index) => one !== String(name) || index === at)
			if (at < 0) rest.push([String(name), String(value)])
			else rest[at] = [String(name), String(value)]
			this.#set(rest)
		}
		delete(name: unknown): void {
			this.#set(this.#pairs.filter(([one]) => one !== String(name)))
		}
		sort(): void {
			this.#set(this.#pairs.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
		}
		forEach(visit: (value: string, name: string, all: URLSearchParams) => void): void {
			for (const [name, value] of this.#pairs) visit(value, name, this)
		}
		*keys(): IterableIterator<string> {
			for (const [name] of this.#pairs) yield name
		}
		*values(): IterableIterator<string> {
			for (const [, value] of this.#pairs) yield value
		}
		*entries(): IterableIterator<[string, string]> {
			for (const [name, value] of this.#pairs) yield [name, value]
		}
		[Symbol.iterator](): IterableIterator<[string, string]> {
			return this.entries()
		}
		toString(): string {
			return tool('params_text', JSON.stringify(this.#pairs), '', '')
		}
		#set(pairs: [string, string][]): void {
			this.#pairs = pairs
			this.#changed?.(this.toString())
		}
	}
	add('URLSearchParams', URLSearchParams)

	interface Parts {
		href: string
		search: string
		[part: string]: string
	}
	const names = Object.keys(JSON.parse(tool('url', 'https://a', '', '')) as Parts)
	class URL {
		#parts: Parts
		#params: URLSearchParams | undefined
		constructor(address: unknown, base?: unknown) {
			const text = tool('url', String(address), base === undefined ? '' : String(base), '')
			if (text === '') throw new TypeError(`this is not a URL: ${String(address).slice(0, 100)}`)
			this.#parts = JSON.parse(text) as Parts
		}
		static canParse(address: unknown, base?: unknown): boolean {
			return tool('url', String(address), base === undefined ? '' : String(base), '') !== ''
		}
		static parse(address: unknown, base?: unknown): URL | null {
			return URL.canParse(address, base) ? new URL(address, base) : null
		}
		get searchParams(): URLSearchParams {
			return (this.#params ??= new URLSearchParams(this.#parts.search, (text) => this.#change('search', text)))
		}
		toString(): string {
			return this.#parts.href
		}
		toJSON(): string {
			return this.#parts.href
		}
		#change(part: string, value: string): void {
			const text = tool('url_set', this.#parts.href, part, value)
			if (text !== '') this.#parts = JSON.parse(text) as Parts
		}
		static {
			for (const part of names) {
				Object.defineProperty(URL.prototype, part, {
					get(this: URL) {
						return this.#parts[part]
					},
					set(this: URL, value: unknown) {
						this.#params = undefined
						if (part !== 'origin') this.#change(part, String(value))
					},
					enumerable: true,
					configurable: true,
				})
			}
		}
	}
	add('URL', URL)
}
