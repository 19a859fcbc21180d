/**
 * The program of a child process that checks the store: with a damaged file, LMDB crashes only this process. It first reads the
 * file page by page, then opens it for reading if no gateway runs.
 *
 *     node store-child.ts '{"path": FOLDER, "running": BOOLEAN, "withinMs": NUMBER}'
 */
import { chownSync, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../errors.ts'
import { isWithin, joinKey, endOf, keyAfter, splitKey } from '../../store/keys.ts'
import type { Entry, Key } from '../../store/ports.ts'
import { checkFile } from '../../backup/check-file.ts'
import type { Env } from '../../store/lmdb/env.ts'
import { formatProblem } from '../../store/format.ts'
import { readMark } from '../../store/lmdb/format-mark.ts'
import { readEntry } from '../../store/lmdb/record.ts'
import { dataFile, keysOf, lockFile } from '../../store/lmdb/tables.ts'
import type { StoreRequest, StorePage, StoreAnswer, StoreQuestion, StoreVerdict } from './store-process.ts'

const { path, running, withinMs } = JSON.parse(process.argv[2] as string) as {
	path: string
	running: boolean
	withinMs: number
}
const limits = { wholeBytes: 64 * 1024 * 1024, withinMs }

/** Entries of one answer to `list`, and keys of one to `keys`. */
const PAGE = 256
const KEYS_PAGE = 4096

let opened: Promise<Env> | undefined
const verdict = await judge()
process.send?.({ verdict } satisfies StoreAnswer)
process.on('message', (question: StoreQuestion) => void answer(question))
// The doctor has ended or needs the store no more.
process.on('disconnect', () => process.exit(0))

async function judge(): Promise<StoreVerdict> {
	const finding = check()
	const { damage, refused, settled } = finding
	if (refused !== null) return finding
	if (damage === null) return running ? finding : { ...finding, ...(await opening()) }
	if (settled && !running) return finding
	// Another process writes to the file: the apparent damage may be pages of a later state.
	process.send?.({ suspected: damage } satisfies StoreAnswer)
	try {
		return await checkWithReader()
	} catch (error) {
		if (settled) return finding
		return {
			...finding,
			damage: null,
			refused: `it keeps changing, and LMDB cannot open it: ${messageOf(error)}`,
		}
	}
}

function check(): StoreVerdict {
	try {
		return { ...checkFile(join(path, dataFile), limits), refused: null, mark: null }
	} catch (error) {
		const refused = messageOf(error)
		return { damage: null, refused, mark: null, complete: false, settled: true, pages: 0, records: 0 }
	}
}

/** While a read transaction is open, LMDB overwrites no page of its state or of a later one. */
async function checkWithReader(): Promise<StoreVerdict> {
	const env = await open()
	const reader = env.root.useReadTransaction()
	try {
		return check()
	} finally {
		reader.done()
		await env.root.close()
	}
}

async function opening(): Promise<Pick<StoreVerdict, 'refused' | 'mark'>> {
	try {
		const mark = readMark((await env()).tables) ?? null
		return { mark, refused: (mark && formatProblem(mark, path)) ?? null }
	} catch (error) {
		return { mark: null, refused: messageOf(error) }
	}
}

async function answer({ id, ...question }: StoreQuestion): Promise<void> {
	try {
		process.send?.({ id, result: await resultOf(question) })
	} catch (error) {
		process.send?.({ id, error: messageOf(error) })
	}
}

async function resultOf(question: StoreRequest): Promise<unknown> {
	if ('get' in question) return read(joinKey(question.get))
	if ('keys' in question) return (await keysUnder(question.keys, question, KEYS_PAGE)).map(splitKey)
	return Promise.all((await keysUnder(question.list, question, PAGE)).map(read)).then((entries) =>
		entries.filter((entry) => entry !== undefined),
	)
}

async function keysUnder(prefix: Key, { after, limit = Infinity }: StorePage, most: number): Promise<string[]> {
	const { tables } = await env()
	const joined = joinKey(prefix)
	const start = after ? keyAfter(joinKey(after)) : joined
	const keys = keysOf(tables.records, { start, end: endOf(joined) }, Math.min(limit, most))
	return keys.filter((key) => isWithin(key, joined))
}

async function read(joined: string): Promise<Entry<unknown> | undefined> {
	return readEntry((await env()).tables.records, joined)?.entry
}

function env(): Promise<Env> {
	return (opened ??= open())
}

/** Loads lmdb, which nothing else here needs. */
async function open(): Promise<Env> {
	const { openEnv } = await import('../../store/lmdb/env.ts')
	const lock = join(path, lockFile)
	const isNew = !existsSync(lock)
	const made = openEnv(path, { readOnly: true })
	// LMDB creates a missing lock file. One that belongs to root would keep out the gateway's user.
	if (isNew && process.getuid?.() === 0) {
		const { uid, gid } = statSync(join(path, dataFile))
		chownSync(lock, uid, gid)
	}
	return made
}
