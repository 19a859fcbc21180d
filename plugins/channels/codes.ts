/** Pairing codes: their format, and which of a channel's codes are open. */
import { hash, randomBytes } from 'node:crypto'

/** The stored record. */
export interface OpenCode {
	hash: string
	chat_id: string
	/** Id of the user who requested it. Absent in codes of version 0.1.0. */
	by?: string
	expires_at: string
}

/** Crockford's base32: without I, L, O and U. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const LENGTH = 8
const FORM = /^[0-9A-HJKMNP-TV-Z]{8}$/
const LIFE_MS = 10 * 60_000
const PER_CHAT = 3
/** Limits what strangers can store. */
const PER_CHANNEL = 1_000

/** 40 random bits. */
export function newCode(): string {
	// 256 is a multiple of 32, so all letters are equally likely.
	return Array.from(randomBytes(LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('')
}

/** The canonical form of a typed code. Accepts lower case, spaces, dashes, O for 0, I and L for 1. Undefined if it is invalid. */
export function readCode(text: string): string | undefined {
	const code = text.toUpperCase().replaceAll(/[\s-]/g, '').replaceAll('O', '0').replaceAll(/[IL]/g, '1')
	return FORM.test(code) ? code : undefined
}

/** Includes the channel, so that a record copied to another channel is invalid there. */
export function hashOf(channel_id: string, code: string): string {
	return hash('sha256', `pairing\0${channel_id}\0${code}`, 'base64url')
}

export function openAmong(codes: readonly OpenCode[], now: number): OpenCode[] {
	return codes.filter(({ expires_at }) => Date.parse(expires_at) > now)
}

/** Adds a code. Over a limit, drops the oldest code of the chat, or of the channel: preferably of a chat with several. */
export function withCode(open: readonly OpenCode[], code: Omit<OpenCode, 'expires_at'>, now: number): OpenCode[] {
	const { chat_id } = code
	const ofChat = open.filter((other) => other.chat_id === chat_id)
	const dropped = new Set(ofChat.slice(0, Math.max(0, ofChat.length - PER_CHAT + 1)))
	const added = { ...code, expires_at: new Date(now + LIFE_MS).toISOString() }
	const codes = [...open.filter((other) => !dropped.has(other)), added]
	if (codes.length > PER_CHANNEL) {
		const isOnly = new Map<string, boolean>()
		for (const one of codes) isOnly.set(one.chat_id, !isOnly.has(one.chat_id))
		const first = codes.findIndex((one) => !isOnly.get(one.chat_id))
		codes.splice(Math.max(0, first), 1)
	}
	return codes
}
