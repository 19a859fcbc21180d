/** What readers who may not list secrets see: that a secret was there, not which one. */
import type { NewEvent } from '../protocol.ts'
import { NAMELESS } from './secret-set.ts'
import { mapStrings } from './walk.ts'

/** Also matches a mark that was cut within its name. */
const MARK = /\[redacted:[\w .:/@+-]{1,128}(?:\]|(?=…)|$)/g

/** Also for JSON text, since a mark needs no escapes. */
export function withoutNames(text: string): string {
	return text.includes('[redacted:') ? text.replace(MARK, NAMELESS) : text
}

export function dataWithoutNames<T>(value: T): T {
	return mapStrings(value, withoutNames)
}

export function eventWithoutNames<E extends NewEvent>(event: E): E {
	const payload = dataWithoutNames(event.payload)
	if (event.event_type !== 'security.redacted') return payload === event.payload ? event : { ...event, payload }
	const { sink, count } = payload
	return { ...event, payload: { sink, count } }
}
