/**
 * The process that looks at the store: LMDB would end it over a damaged file, and then ends nobody else. The file is looked
 * over page by page first; then it is opened for reading, where no gateway has it open.
 *
 *     node store-child.ts '{"path": FOLDER, "running": BOOLEAN}'
 */
import { chownSync, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../errors.ts'
import { isWithin, joinKey, splitKey, endOf, behind } from '../store/keys.ts'
import type { Entry, Key } from '../store/ports.ts'
import { checkFile } from '../store/lmdb/check.ts'
import type { Env } from '../store/lmdb/env.ts'
import { dataFile, format, formatKey } from '../store/lmdb/tables.ts'
import type { StoreAnswer, StoreQuestion, StoreVerdict } from './store-process.ts'

const { path, running } = JSON.parse(process.argv[2] as string) as { path: string; running: boolean }
const limits = { wholeBytes: 64 * 1024 * 1024, withinMs: 1_500 }

/** Entries of one answer to `list`. */
const PAGE = 256

let opened: Promise<Env> | undefined
const verdict = await judge()
process.send?.({ verdict } satisfies StoreAnswer)
process.on('message', (question: StoreQuestion) => void answer(question))
// The doctor is gone, or done.
process.on('disconnect', () => process.exit(0))

async function judge(): Promise<StoreVerdict> {
	const finding = look()
	const { damage, refused } = finding
	if (refused !== null) return finding
	if (!running) return damage === null ? { ...finding, refused: await whyNotOpened() } : finding
	if (damage === null) return finding
	// A gateway writes meanwhile: only what a reader's mark keeps in place can be called damaged.
	process.send?.({ suspected: damage } satisfies StoreAnswer)
	return lookWithMark().catch(() => finding)
}

function look(): StoreVerdict {
	try {
		return { ...checkFile(join(path, dataFile), limits), refused: null }
	} catch (error) {
		return { damage: null, refused: messageOf(error), complete: false, pages: 0, records: 0 }
	}
}

/** What is the newest state behind the mark cannot be overwritten before the mark is gone. */
async function lookWithMark(): Promise<StoreVerdict> {
	const env = await open()
	const mark = env.root.useReadTransaction()
	try {
		return look()
	} finally {
		mark.done()
		await env.close()
	}
}

async function whyNotOpened(): Promise<string | null> {
	try {
		const { findRecord } = await import('../store/lmdb/read.ts')
		const mark = findRecord((await env()).tables.meta, formatKey)
		if (!mark || mark.stamp === format) return null
		return `it has format ${mark.stamp}, and this version reads ${format}: start the version that wrote it`
	} catch (error) {
		return messageOf(error)
	}
}

async function answer({ id, ...question }: StoreQuestion): Promise<void> {
	try {
		process.send?.({ id, result: 'get' in question ? await get(question.get) : await list(question) })
	} catch (error) {
		process.send?.({ id, error: messageOf(error) })
	}
}

async function get(key: Key): Promise<Entry<unknown> | undefined> {
	return read(joinKey(key))
}

async function list({
	list: prefix,
	after,
	limit,
}: Omit<Extract<StoreQuestion, { list: Key }>, 'id'>): Promise<Entry<unknown>[]> {
	const { keysOf } = await import('../store/lmdb/read.ts')
	const { tables } = await env()
	const joined = joinKey(prefix)
	const start = after ? behind(joinKey(after)) : joined
	const keys = keysOf(tables.records, { start, end: endOf(joined), limit: Math.min(limit ?? PAGE, PAGE) })
	const entries = await Promise.all(keys.filter((key) => isWithin(key, joined)).map(read))
	return entries.filter((entry) => entry !== undefined)
}

async function read(joined: string): Promise<Entry<unknown> | undefined> {
	const { findRecord, valueOf } = await import('../store/lmdb/read.ts')
	const { records } = (await env()).tables
	const found = findRecord(records, joined)
	return found && { key: splitKey(joined), value: valueOf(records, joined, found.bytes), rev: String(found.stamp) }
}

function env(): Promise<Env> {
	return (opened ??= open())
}

/** lmdb is loaded only for this. */
async function open(): Promise<Env> {
	const { openEnv } = await import('../store/lmdb/env.ts')
	const lock = join(path, 'lock.mdb')
	const isNew = !existsSync(lock)
	const made = openEnv(path, { readOnly: true })
	// LMDB makes it where it is gone. Made by root, it would keep the gateway's own user out.
	if (isNew && process.getuid?.() === 0) {
		const { uid, gid } = statSync(join(path, dataFile))
		chownSync(lock, uid, gid)
	}
	return made
}
