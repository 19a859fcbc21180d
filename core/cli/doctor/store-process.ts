/** Reads the store through a separate process, since a damaged file can end the process that opens it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../errors.ts'
import type { FormatMark } from '../../store/format.ts'
import { withSingleWrites } from '../../store/ops.ts'
import type { Entry, Key, ListOptions, Store } from '../../store/ports.ts'
import type { FileFinding } from '../../backup/check-file.ts'
import { dataFile } from '../../store/lmdb/tables.ts'
import { startChild } from '../child.ts'
import { programOf } from '../../util/own-code.ts'

/** The result of a check of the data file, page by page. */
export interface StoreVerdict extends FileFinding {
	/** Why the file cannot be read or opened, although no damage was found. */
	refused: string | null
	/** The mark of its format; null if the file was not opened or is empty. */
	mark: FormatMark | null
}

export type StorePage = Pick<ListOptions, 'after' | 'limit'>
/** `keys`: as `list`, without decoding values. */
export type StoreRequest = { get: Key } | ({ list: Key } & StorePage) | ({ keys: Key } & StorePage)
export type StoreQuestion = { id: number } & StoreRequest
/** `suspected`: damage that the process checks again after this message, which may end it. */
export type StoreAnswer =
	| { suspected: string }
	| { verdict: StoreVerdict }
	| { id: number; result: unknown }
	| { id: number; error: string }

export interface StoreProcess extends AsyncDisposable {
	readonly verdict: Promise<StoreVerdict>
	/** Read-only: writes throw. Does not list in reverse. */
	readonly store: Store
}

export interface StoreProcessOptions {
	/** The data folder. */
	path: string
	/** Whether a gateway has the data open. */
	running: boolean
	env: Readonly<NodeJS.ProcessEnv>
	/** After this time no further pages are checked. */
	withinMs: number
}

const child = programOf(new URL('./store-child.ts', import.meta.url))

/** Undefined if there is no data file yet. */
export function openStoreProcess({ path, running, env, withinMs }: StoreProcessOptions): StoreProcess | undefined {
	if (!existsSync(join(path, dataFile))) return undefined
	const verdict = Promise.withResolvers<StoreVerdict>()
	const pending = new Map<number, PromiseWithResolvers<unknown>>()
	let suspected: string | null = null
	const failed = (why: string): void => {
		verdict.resolve({ damage: suspected, refused: why, mark: null, ...nothingSeen })
		for (const one of pending.values()) one.reject(new Fault('unavailable', `the store cannot be read: ${why}`))
		pending.clear()
	}
	const order = JSON.stringify({ path, running, withinMs })
	const options = { env: { PATH: env.PATH }, serialization: 'advanced' } as const
	const { process, ended } = startChild<StoreAnswer>(child, [order], options, (answer) => {
		if ('suspected' in answer) {
			suspected = answer.suspected
			return
		}
		if ('verdict' in answer) return verdict.resolve(answer.verdict)
		const request = pending.get(answer.id)
		pending.delete(answer.id)
		if ('error' in answer) request?.reject(new Fault('store_damaged', answer.error))
		else request?.resolve(answer.result)
	})
	ended.then(
		(how) => failed(`the process that tried to open it ended (${how})`),
		(error: Error) => failed(`no process could be started to open it: ${error.message}`),
	)
	let last = 0
	const ask = async <T>(question: StoreRequest): Promise<T> => {
		const id = ++last
		const request = Promise.withResolvers<unknown>()
		pending.set(id, request)
		if (!process.connected) failed('the process that opened it has ended')
		else process.send({ id, ...question } satisfies StoreQuestion)
		return (await request.promise) as T
	}
	return {
		verdict: verdict.promise,
		store: withSingleWrites({
			get: (key) => ask({ get: key }),
			getShared: (key) => ask({ get: key }),
			list: <T>(prefix: Key, options?: ListOptions) =>
				paged<Entry<T>>(
					(page) => ask({ list: prefix, ...page }),
					({ key }) => key,
					options,
				),
			keys: (prefix, options) =>
				paged<Key>(
					(page) => ask({ keys: prefix, ...page }),
					(key) => key,
					options,
				),
			commit: async () => refuse(),
			watch: () => refuse(),
		}),
		async [Symbol.asyncDispose]() {
			if (process.exitCode !== null || process.signalCode !== null) return
			process.kill('SIGKILL') // it only reads
			await ended.catch(() => {})
		},
	}
}

async function* paged<T>(
	ask: (page: StorePage) => Promise<T[]>,
	keyOf: (one: T) => Key,
	{ limit = Infinity, after }: ListOptions = {},
): AsyncIterable<T> {
	let start = after
	for (let left = limit; left > 0;) {
		const page = await ask({ ...(start && { after: start }), ...(Number.isFinite(left) && { limit: left }) })
		yield* page
		const last = page.at(-1)
		if (last === undefined) return
		start = keyOf(last)
		left -= page.length
	}
}

function refuse(): never {
	throw new Fault('forbidden', 'the doctor only reads')
}

const nothingSeen = { complete: false, settled: false, pages: 0, records: 0 } as const
