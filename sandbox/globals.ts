/**
 * The globals that a program has besides the JavaScript language, and those that are removed.
 *
 * Added: `console` (writes with `svc.log`), `setTimeout`, `clearTimeout`, `queueMicrotask`, `structuredClone` (data
 * without classes), `TextEncoder`, `TextDecoder` (UTF-8), `atob`, `btoa`, `crypto.randomUUID`, `crypto.getRandomValues`;
 * in urls.ts `URL` and `URLSearchParams`.
 *
 * Removed: `WebAssembly`, `SharedArrayBuffer`, `Atomics` (another compiler, and ways to block the thread),
 * `FinalizationRegistry`, `WeakRef` (code that runs when nothing waits for it), and `eval` and `Function` with its
 * relatives: a program is the text that was approved, and cannot create code from other text.
 *
 * As in bridge.ts, THE TEXT of the function below is evaluated inside the isolate before the program, and refers to
 * nothing outside itself. It protects no secret: a program that replaces what these functions use breaks only its own call.
 */
import type { Bridge } from './bridge.ts'
import type { Tool } from './host-tools.ts'

export function addGlobals(bridge: Pick<Bridge, 'log' | 'setTimer' | 'clearTimer'>, tool: Tool): void {
	const global = globalThis as unknown as Record<string, unknown>
	const add = (name: string, value: unknown): void => {
		Object.defineProperty(global, name, { value, writable: true, configurable: true })
	}
	for (const name of ['WebAssembly', 'SharedArrayBuffer', 'Atomics', 'FinalizationRegistry', 'WeakRef', 'eval']) {
		delete global[name]
	}
	const makers = [function () {}, async function () {}, function* () {}, async function* () {}]
	for (const { constructor } of makers) {
		const refuse = function (): never {
			throw new EvalError('a program cannot create code from text')
		}
		Object.defineProperty(refuse, 'name', { value: constructor.name })
		// So that `instanceof Function` and `class extends` still work.
		Object.defineProperty(refuse, 'prototype', { value: constructor.prototype as object })
		Object.defineProperty(constructor.prototype, 'constructor', { value: refuse })
		if (constructor.name === 'Function') add('Function', refuse)
	}

	const log = (...things: unknown[]): void => bridge.log(things)
	add('console', { debug: log, log, info: log, warn: log, error: log })

	add('setTimeout', (run: unknown, delay?: unknown, ...args: unknown[]): number => {
		if (typeof run !== 'function') throw new TypeError('setTimeout takes a function')
		const ms = Math.min(Math.max(Number(delay) || 0, 0), 2 ** 31 - 1)
		return bridge.setTimer(() => void run(...args), ms)
	})
	add('clearTimeout', (timer: unknown): void => {
		if (typeof timer === 'number') bridge.clearTimer(timer)
	})
	add('queueMicrotask', (run: unknown): void => {
		if (typeof run !== 'function') throw new TypeError('queueMicrotask takes a function')
		void Promise.resolve().then(() => void run())
	})

	/** Latin-1: each character becomes one byte. */
	const toBytes = (binary: string): Uint8Array => Uint8Array.from(binary, (character) => character.charCodeAt(0))
	const toBinary = (bytes: Uint8Array): string => {
		let text = ''
		for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
		return text
	}
	const bytesOf = (source: unknown): Uint8Array => {
		if (source instanceof ArrayBuffer) return new Uint8Array(source)
		if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
		throw new TypeError('an ArrayBuffer or a view of one is needed')
	}

	add(
		'TextEncoder',
		class TextEncoder {
			readonly encoding = 'utf-8'
			encode(text: unknown = ''): Uint8Array {
				const whole = String(text).toWellFormed()
				return toBytes(
					encodeURIComponent(whole).replace(/%(..)/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
				)
			}
		},
	)
	add(
		'TextDecoder',
		class TextDecoder {
			readonly encoding = 'utf-8'
			constructor(label: unknown = 'utf-8') {
				if (!/^utf-?8$/i.test(String(label))) throw new RangeError('TextDecoder supports utf-8 only')
			}
			decode(source?: unknown): string {
				return source === undefined ? '' : tool('utf8', toBinary(bytesOf(source)), '', '')
			}
		},
	)

	const encoded = (name: 'btoa' | 'atob', given: unknown, problem: string): string => {
		const text = String(given)
		const result = tool(name, text, '', '')
		if (result === '' && text.trim() !== '') throw new RangeError(problem)
		return result
	}
	add('btoa', (given: unknown) => encoded('btoa', given, 'btoa takes at most 8 Mi characters, up to U+00FF only'))
	add('atob', (given: unknown) => encoded('atob', given, 'this is not base64, or has more than 8 Mi characters'))

	add('crypto', {
		randomUUID: () => tool('uuid', '', '', ''),
		getRandomValues<T>(target: T): T {
			const bytes = bytesOf(target)
			if (bytes.length > 65_536) throw new RangeError('at most 65,536 bytes at a time')
			bytes.set(toBytes(tool('random', String(bytes.length), '', '')))
			return target
		},
	})

	const clone = (value: unknown, seen: Map<unknown, unknown>): unknown => {
		if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError('a function cannot be cloned')
		if (typeof value !== 'object' || value === null) return value
		if (seen.has(value)) return seen.get(value)
		const keep = <T>(copy: T): T => {
			seen.set(value, copy)
			return copy
		}
		if (value instanceof Date) return keep(new Date(value))
		if (value instanceof ArrayBuffer) return keep(value.slice(0))
		if (ArrayBuffer.isView(value)) {
			const View = value.constructor as new (buffer: unknown) => unknown
			return keep(new View(bytesOf(value).slice().buffer))
		}
		if (value instanceof Map) {
			const copy = keep(new Map())
			for (const [key, item] of value) copy.set(clone(key, seen), clone(item, seen))
			return copy
		}
		if (value instanceof Set) {
			const copy = keep(new Set())
			for (const item of value) copy.add(clone(item, seen))
			return copy
		}
		if (value instanceof Error) return keep(new Error(value.message))
		const copy = keep<Record<string, unknown>>(
			Array.isArray(value) ? (Array.from({ length: value.length }) as never) : {},
		)
		for (const [key, item] of Object.entries(value)) {
			Object.defineProperty(copy, key, {
				value: clone(item, seen),
				writable: true,
				enumerable: true,
				configurable: true,
			})
		}
		return copy
	}
	add('structuredClone', (value: unknown) => clone(value, new Map()))
}
