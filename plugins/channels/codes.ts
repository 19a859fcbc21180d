/** Pairing codes: their format, and which of a channel's codes are open. */
import { hash, randomBytes } from 'node:crypto'

/** The stored record. */
export interface OpenCode {
	hash: string
	chat_id: string
	/** Who asked for it: the id of a user. Absent in codes of version 0.1.0. */
	by?: string
	expires_at: string
}

/** Crockford's: without I, L, O and U. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const LENGTH = 8
const FORM = /^[0-9A-HJKMNP-TV-Z]{8}$/
const LIFE_MS = 10 * 60_000
const PER_CHAT = 3
/** Of one channel, so that strangers cannot fill the store. */
const PER_CHANNEL = 1_000

/** 40 random bits. */
export function newCode(): string {
	// 256 is a multiple of 32, so all letters are equally likely.
	return Array.from(randomBytes(LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('')
}

/** The canonical form of a typed code: accepts lower case, spaces, dashes, O for 0, I or L for 1. Undefined for an invalid code. */
export function readCode(text: string): string | undefined {
	const code = text.toUpperCase().replaceAll(/[\s-]/g, '').replaceAll('O', '0').replaceAll(/[IL]/g, '1')
	return FORM.test(code) ? code : undefined
}

/** Bound to its channel: a record copied into another channel is invalid there. */
export function hashOf(channel_id: string, code: string): string {
	return hash('sha256', `pairing\0${channel_id}\0${code}`, 'base64url')
}

export function openAmong(codes: readonly OpenCode[], now: number): OpenCode[] {
	return codes.filter(({ expires_at }) => Date.parse(expires_at) > now)
}

/** Adds a code. If needed, the oldest of its chat is dropped, or the oldest of the channel: first from chats with several. */
export function withCode(open: readonly OpenCode[], code: Omit<OpenCode, 'expires_at'>, now: number): OpenCode[] {
	const { chat_id } = code
	const ofChat = open.filter((one) => one.chat_id === chat_id)
	const over = new Set(ofChat.slice(0, Math.max(0, ofChat.length - PER_CHAT + 1)))
	const added = { ...code, expires_at: new Date(now + LIFE_MS).toISOString() }
	const codes = [...open.filter((one) => !over.has(one)), added]
	if (codes.length > PER_CHANNEL) {
		const isOnly = new Map<string, boolean>()
		for (const one of codes) isOnly.set(one.chat_id, !isOnly.has(one.chat_id))
		const first = codes.findIndex((one) => !isOnly.get(one.chat_id))
		codes.splice(Math.max(0, first), 1)
	}
	return codes
}
