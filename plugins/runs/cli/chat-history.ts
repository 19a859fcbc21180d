/** The history of prompts, in a file in the user's home: it belongs to the user, not to a gateway. */
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { jsonIn } from '../../../core/util/json-in.ts'
import { replaceFile } from '../../../core/util/replace-file.ts'
import type { History } from '../../../core/cli/contract.ts'

const ENTRIES = 1_000
/** Longer prompts are not kept: they were probably pasted. */
const ENTRY_LIMIT = 16 * 1024
/** A larger file is shortened at the next start. */
const FILE_LIMIT_BYTES = 1024 * 1024
const FILE_MODE = 0o600

/** `svc/chat-history` in XDG_STATE_HOME or ~/.local/state; undefined if the user has no home. */
export function historyFile(env: Readonly<NodeJS.ProcessEnv>): string | undefined {
	const home = env.HOME || env.USERPROFILE
	const state = env.XDG_STATE_HOME || (home && join(home, '.local', 'state'))
	return state ? join(state, 'svc', 'chat-history') : undefined
}

/**
 * The file has one JSON string per line, newest last, and mode 0600. Without a `file`, or if it cannot be read or written, the
 * history lasts as long as the process: a conversation must not fail because of it.
 */
export function openHistory(file: string | undefined): History {
	const entries = file === undefined ? [] : read(file)
	return {
		entries,
		add(text) {
			if (text.length > ENTRY_LIMIT || text === entries[0]) return
			entries.unshift(text)
			entries.length = Math.min(entries.length, ENTRIES)
			if (file !== undefined) attempt(() => append(file, text))
		},
	}
}

function read(file: string): string[] {
	let entries: string[] = []
	attempt(() => {
		if (!existsSync(file)) return
		chmodSync(file, FILE_MODE)
		const text = readFileSync(file, 'utf8')
		entries = text.split('\n').flatMap(parsed).slice(-ENTRIES)
		if (text.length <= FILE_LIMIT_BYTES && text.split('\n').length <= 2 * ENTRIES) return
		replaceFile(file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
	})
	return entries.toReversed()
}

function append(file: string, text: string): void {
	mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
	appendFileSync(file, `${JSON.stringify(text)}\n`, { mode: FILE_MODE })
}

/** Empty for a damaged line, such as one cut off by a full disk. */
function parsed(line: string): string[] {
	const entry = jsonIn(line)
	return typeof entry === 'string' ? [entry] : []
}

function attempt(work: () => void): void {
	try {
		work()
	} catch {
		// continue without a history
	}
}
