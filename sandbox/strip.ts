import { stripTypeScriptTypes } from 'node:module'
import { programLimits } from './host-protocol.ts'
import type { Program } from './host-protocol.ts'
import { Refusal } from './isolate.ts'

const expected = new Set<unknown>(['ERR_INVALID_TYPESCRIPT_SYNTAX', 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'])

/** Converts TypeScript to JavaScript: types become blanks, so that lines and columns stay the same. Throws a `Refusal`. */
export function strip({ code, language }: Program): string {
	if (language === 'javascript') return code
	try {
		return stripTypeScriptTypes(code)
	} catch (error) {
		const { message, stack = '' } = error instanceof Error ? error : new Error(String(error))
		if (!(error instanceof Error && 'code' in error && expected.has(error.code))) {
			// The compiler itself failed, as it does on very deeply nested types, and it stays unusable for later programs of this
			// process.
			throw new Refusal('sandbox_crash', 'the TypeScript compiler failed on it')
		}
		// Node states the line only at the beginning of the stack.
		const line = /^:(\d+)\n/.exec(stack)?.[1]
		const text = explained(message.trim()).slice(0, programLimits.message_length)
		throw new Refusal('skill_invalid', line ? `line ${line}: ${text}` : text)
	}
}

function explained(message: string): string {
	const what = /^(?:TypeScript )?(.{1,100}?) (?:is|are) not supported in strip-only mode$/.exec(message)?.[1]
	return what === undefined ? message : `${what} cannot be used here: types are only removed, nothing is compiled`
}
