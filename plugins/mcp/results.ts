/** Converts a tool's result to text for a model, and files. The result comes from outside and may contain anything. */
import { isDeepStrictEqual } from 'node:util'
import type { ToolFile } from '../../core/plugin.ts'

/** How many characters of a text are compared with structured content. */
const COMPARED = 64 * 1024
/** Characters of a name, an address or a type that are shown. */
const CUT = 500

type Scrub = (text: string) => string

/** Base64 of one file; a longer one is only named. */
const FILE_LIMIT = 28 * 1024 * 1024

/** The images, recordings and files of a result. */
export function filesOfResult({ content }: Record<string, unknown>): ToolFile[] {
	const blocks = Array.isArray(content) ? (content as unknown[]) : []
	return blocks.flatMap((block) => fileOfBlock(block) ?? [])
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
		...(typeof inner.uri === 'string' && { name: inner.uri.slice(0, CUT) }),
	}
}

/**
 * `scrub` redacts texts before they are shortened. Other texts are returned in full. `hasFiles`: what `filesOfResult` returns
 * stands beside the text, so it is not named.
 */
export function textOfResult(result: Record<string, unknown>, scrub: Scrub, hasFiles = false): string {
	const { content, structuredContent } = result
	const blocks = Array.isArray(content) ? (content as unknown[]) : []
	const texts = blocks.map((block) => (hasFiles && fileOfBlock(block) ? '' : textOfBlock(block, scrub)))
	if (structuredContent !== undefined && !blocks.some((block) => repeats(block, structuredContent))) {
		texts.push(jsonOf(structuredContent))
	}
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

/** Servers should repeat structured content as text, for clients that do not support it. */
function repeats(block: unknown, structured: unknown): boolean {
	const { type, text } = fieldsOf(block)
	if (type !== 'text' || typeof text !== 'string' || text.length > COMPARED) return false
	try {
		return isDeepStrictEqual(JSON.parse(text), structured)
	} catch {
		return false
	}
}

function jsonOf(value: unknown): string {
	try {
		return JSON.stringify(value)
	} catch {
		return '[structured content that is nested too deep: not shown]'
	}
}

function fieldsOf(value: unknown): Record<string, unknown> {
	return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function bytesOf(base64: unknown): string {
	return typeof base64 === 'string' ? `${Math.floor((base64.length * 3) / 4)} bytes` : 'without data'
}
