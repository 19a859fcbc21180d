/** Converts a tool's result to text for a model, and files. The result comes from outside and may contain anything. */
import { isDeepStrictEqual } from 'node:util'
import type { ToolFile } from '../../core/plugin.ts'
import { fieldsOf } from '../../core/util/is-object.ts'

/** Limit of characters of all texts that are compared with structured content. */
const COMPARED = 1024 * 1024
/** Limit of the characters of a name, an address or a type. */
const CUT = 500

/** From this length, a sequence of base64 characters counts as data. No digest or identifier is that long. */
const RUN_LENGTH = 256
/** Such a sequence, possibly with line breaks as in mail. The lookbehind keeps short sequences cheap. */
const RUN = /(?<![\w+/-])[\w+/-]{60,}(?:\r?\n[\w+/-]+)*={0,2}/g
const DATA_URL = /(data:[\w.+/;=-]{0,200};base64,)([\w+/-]+={0,2})/g

type Scrub = (text: string) => string

/** Limit of the base64 of one file. A larger file is described instead. */
const FILE_LIMIT = 28 * 1024 * 1024

/** The images, recordings and files of a result. `scrub` redacts their names. */
export function filesOfResult({ content }: Record<string, unknown>, scrub: Scrub): ToolFile[] {
	const blocks = Array.isArray(content) ? (content as unknown[]) : []
	return blocks.flatMap((block) => {
		const file = fileOfBlock(block)
		return file?.name === undefined ? (file ?? []) : { ...file, name: scrub(file.name) }
	})
}

function fileOfBlock(block: unknown): ToolFile | undefined {
	const { type, data, mimeType, resource } = fieldsOf(block)
	const inner = fieldsOf(resource)
	const base64 = type === 'image' || type === 'audio' ? data : type === 'resource' ? inner.blob : undefined
	if (typeof base64 !== 'string' || base64.length > FILE_LIMIT) return undefined
	const bytes = Buffer.from(base64, 'base64')
	if (bytes.length === 0) return undefined
	const media_type = type === 'resource' ? inner.mimeType : mimeType
	return {
		bytes,
		...(typeof media_type === 'string' && { media_type }),
		...(typeof inner.uri === 'string' && { name: inner.uri }),
	}
}

/**
 * The text of a result. `scrub` redacts texts that are shortened; other texts are returned complete and unredacted. `hasFiles`:
 * the files of `filesOfResult` accompany the text, so it does not describe them.
 */
export function textOfResult(result: Record<string, unknown>, scrub: Scrub, hasFiles = false): string {
	const { content, structuredContent } = result
	const blocks = Array.isArray(content) ? (content as unknown[]) : []
	const isRepeated = structuredContent !== undefined && repeats(blocks, structuredContent)
	const structure = structuredContent === undefined ? undefined : structureOf(structuredContent, scrub)
	// If the text repeats the structure, it contains the same base64.
	const shown = isRepeated && structure?.isCut ? blocks.filter((block) => fieldsOf(block).type !== 'text') : blocks
	const texts = shown.map((block) => (hasFiles && fileOfBlock(block) ? '' : textOfBlock(block, scrub)))
	if (structure && (!isRepeated || structure.isCut)) texts.push(structure.json)
	return texts.filter((text) => text !== '').join('\n')
}

function textOfBlock(block: unknown, scrub: Scrub): string {
	const cutShort = (value: unknown): string =>
		typeof value !== 'string' ? 'unnamed' : value.length > CUT ? scrub(value).slice(0, CUT) : value
	const mimeOf = (kind: unknown): string => (kind === undefined ? 'of unknown type' : cutShort(kind))
	const { type, text, data, mimeType, resource, uri, name, description } = fieldsOf(block)
	switch (type) {
		case 'text':
			return typeof text === 'string' ? text : ''
		case 'image':
		case 'audio':
			return `[${type}, ${mimeOf(mimeType)}, ${bytesOf(data)}: not shown]`
		case 'resource': {
			const inner = fieldsOf(resource)
			const about = `resource ${cutShort(inner.uri)}, ${mimeOf(inner.mimeType)}`
			if (typeof inner.text === 'string') return `[${about}]\n${inner.text}`
			return `[${about}, ${bytesOf(inner.blob)}: not shown]`
		}
		case 'resource_link': {
			const more = typeof description === 'string' ? `: ${cutShort(description)}` : ''
			return `[link to the resource ${cutShort(name)}, ${cutShort(uri)}, ${mimeOf(mimeType)}${more}]`
		}
		default:
			return `[content of the type ${cutShort(type)}: not shown]`
	}
}

/**
 * Whether the texts repeat the structured content, as servers should do for clients that do not support it: as one JSON text, or
 * as one block per item of a list. Servers wrap values that are not objects in an object with a single field.
 */
function repeats(blocks: readonly unknown[], structured: unknown): boolean {
	const texts = blocks.flatMap((block) => {
		const { type, text } = fieldsOf(block)
		return type === 'text' && typeof text === 'string' ? [text] : []
	})
	if (texts.reduce((sum, { length }) => sum + length, 0) > COMPARED) return false
	const wrapped = Object.values(fieldsOf(structured))
	const forms = wrapped.length === 1 ? [structured, wrapped[0]] : [structured]
	return forms.some((form) => texts.some((text) => encodes(text, form)) || encodeItems(texts, form))
}

function encodeItems(texts: readonly string[], form: unknown): boolean {
	return (
		Array.isArray(form) &&
		form.length > 0 &&
		form.length === texts.length &&
		form.every((item, at) => encodes(texts[at] ?? '', item))
	)
}

/** Whether the text is the value itself or its JSON. */
function encodes(text: string, value: unknown): boolean {
	if (text === value) return true
	try {
		return isDeepStrictEqual(JSON.parse(text), value)
	} catch {
		return false
	}
}

/** Structured content as JSON. `isCut`: it contained base64, which was replaced by its size. */
function structureOf(value: unknown, scrub: Scrub): { json: string; isCut: boolean } {
	let isCut = false
	const sizeOf = (base64: string): string => {
		isCut = true
		return `[${bytesOf(base64)}: not shown]`
	}
	try {
		const json = JSON.stringify(value, (_, one: unknown) =>
			typeof one === 'string' ? withoutRuns(one, scrub, sizeOf) : withoutData(one, sizeOf),
		)
		return { json, isCut }
	} catch {
		return { json: '[structured content that is nested too deeply: not shown]', isCut }
	}
}

function withoutRuns(text: string, scrub: Scrub, sizeOf: (base64: string) => string): string {
	const replace = (one: string): string =>
		one
			.replaceAll(DATA_URL, (_, head: string, base64: string) => head + sizeOf(base64))
			.replaceAll(RUN, (run) => {
				const base64 = run.replaceAll(/\r?\n/g, '')
				return base64.length >= RUN_LENGTH && /[a-z]/i.test(base64) ? sizeOf(base64) : run
			})
	const replaced = replace(text)
	// Redact before the replacement: otherwise a part of a secret could remain beside removed base64.
	return replaced === text ? text : replace(scrub(text))
}

/** In structured content, an image, recording or file has base64 of any length in `data` or `blob`. */
function withoutData(value: unknown, sizeOf: (base64: string) => string): unknown {
	const fields = fieldsOf(value)
	if (typeof fields.mimeType !== 'string') return value
	const name = typeof fields.data === 'string' ? 'data' : 'blob'
	const base64 = fields[name]
	// A value that was already replaced is not base64.
	return typeof base64 === 'string' && /^[\w+/=\s-]+$/.test(base64) ? { ...fields, [name]: sizeOf(base64) } : value
}

function bytesOf(base64: unknown): string {
	return typeof base64 === 'string' ? `${Math.floor((base64.length * 3) / 4)} bytes` : 'without data'
}
