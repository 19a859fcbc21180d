import { SHORTEST, formsOf } from './forms.ts'
import { Matcher } from './matcher.ts'
import type { Span } from './matcher.ts'
import { isOrdinary } from './ordinary.ts'

/** By the id of a secret. */
export type Counts = Map<string, number>

/** Values under one id, the newest; a secret that is rotated every hour must not fill the memory. */
const VALUES = 16
/** Secrets that are gone and still looked for. */
const RETIRED = 100
/**
 * Taking out a secret can bring together what is another one, where its value looks like our own mark. Each time around
 * leaves less of the text.
 */
const ROUNDS = 16
const NAMELESS = '[redacted]'
const safeLabel = /^[\w .:/@+-]{1,128}$/

interface Known {
	name: string
	/** Oldest first. */
	values: string[]
	/** What stands in its place, chosen when the secrets stood at that version. */
	mark?: { text: string; version: number }
}

/** Which secrets are looked for, and what stands in their place. */
export class KnownSecrets {
	readonly #secrets = new Map<string, Known>()
	/** Those of them that are gone, oldest first. */
	readonly #retired = new Set<string>()
	readonly #matcher = new Matcher()
	#version = 0

	get any(): boolean {
		return this.#secrets.size > 0
	}

	nameOf(id: string): string {
		return this.#secrets.get(id)?.name ?? id
	}

	/** See `Redactor.add`. */
	add({ id, name, value }: { id: string; name: string; value: string }): boolean {
		const wanted = value.trim()
		if (wanted.length < SHORTEST || isOrdinary(wanted)) return false
		const before = this.#secrets.get(id)
		const values = before?.values ?? []
		const isNew = !values.includes(wanted)
		if (!isNew && before?.name === name) return true
		if (isNew) {
			this.#passOn(wanted, id)
			for (const form of formsOf(wanted)) this.#matcher.add(form, id)
		}
		const all = isNew ? [...values, wanted] : values
		for (const outlived of all.slice(0, -VALUES)) this.#forget(outlived, id)
		this.#secrets.set(id, { name, values: all.slice(-VALUES) })
		this.#version++
		return true
	}

	remove(id: string): void {
		const values = this.#secrets.get(id)?.values
		if (!values) return
		this.#secrets.delete(id)
		this.#retired.delete(id)
		for (const value of values) this.#forget(value, id)
		this.#version++
	}

	/** See `Redactor.retire`. */
	retire(id: string): void {
		if (!this.#secrets.has(id)) return
		this.#retired.add(id)
		const [oldest = id] = this.#retired
		if (this.#retired.size > RETIRED) this.remove(oldest)
	}

	/** The text without secrets; what was taken out is added to `found`. */
	clean(text: string, found: Counts, except?: ReadonlySet<string>): string {
		let clean = text
		for (let round = 0; round < ROUNDS && clean.length >= SHORTEST; round++) {
			const { spans } = this.#matcher.find(clean, except)
			if (spans.length === 0) break
			clean = this.#replace(clean, spans, found)
		}
		return clean
	}

	/** How much of the text no piece that follows can change any more. */
	safeLength(text: string, except?: ReadonlySet<string>): number {
		const { spans, open: early } = this.#matcher.find(text, except)
		const open = Math.min(early, this.#matcher.openAtEnd(text, except))
		return spans.find(({ start, end }) => start < open && open < end)?.start ?? open
	}

	#replace(text: string, spans: readonly Span[], found: Counts): string {
		let clean = ''
		let at = 0
		for (const { start, end, owner } of spans) {
			clean += text.slice(at, start) + this.#markOf(owner)
			found.set(owner, (found.get(owner) ?? 0) + 1)
			at = end
		}
		return clean + text.slice(at)
	}

	/** One that is gone must not hide its value from whoever may see it as another secret's. */
	#passOn(value: string, id: string): void {
		for (const gone of this.#retired)
			if (gone !== id && this.#secrets.get(gone)?.values.includes(value)) this.remove(gone)
	}

	#forget(value: string, id: string): void {
		for (const form of formsOf(value)) this.#matcher.remove(form, id)
	}

	/** It must not hold a secret itself, and must not break the JSON or HTML that it comes to stand in. */
	#markOf(id: string): string {
		const secret = this.#secrets.get(id)
		if (!secret) return NAMELESS
		if (secret.mark?.version === this.#version) return secret.mark.text
		const isSafe = (mark: string): boolean => this.#matcher.find(mark).spans.length === 0
		const labels = [secret.name, id].filter((label) => safeLabel.test(label))
		const text = labels.map((label) => `[redacted:${label}]`).find(isSafe) ?? NAMELESS
		secret.mark = { text, version: this.#version }
		return text
	}
}
