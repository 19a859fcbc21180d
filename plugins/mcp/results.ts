/** What a model gets to read of a tool's result: text. The result comes from outside and may hold anything. */
import { isDeepStrictEqual } from 'node:util'

const LIMIT = 64 * 1024

export function textOfResult(result: Record<string, unknown>): string {
	const { content, structuredContent } = result
	const blocks = Array.isArray(content) ? (content as unknown[]) : []
	const texts = blocks.map(textOfBlock)
	if (structuredContent !== undefined && !blocks.some((block) => repeats(block, structuredContent))) {
		texts.push(jsonOf(structuredContent))
	}
	return cut(texts.filter((text) => text !== '').join('\n'))
}

function textOfBlock(block: unknown): string {
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
			return `[a piece of the kind ${cutShort(type)}: not shown]`
	}
}

/** Servers are asked to say structured content as text too, for clients that do not know it. */
function repeats(block: unknown, structured: unknown): boolean {
	const { type, text } = fieldsOf(block)
	if (type !== 'text' || typeof text !== 'string' || text.length > LIMIT) return false
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

function mimeOf(type: unknown): string {
	return type === undefined ? 'of unknown type' : cutShort(type)
}

function bytesOf(base64: unknown): string {
	return typeof base64 === 'string' ? `${Math.floor((base64.length * 3) / 4)} bytes` : 'without data'
}

function cutShort(value: unknown): string {
	return typeof value === 'string' ? value.slice(0, 500) : 'unnamed'
}

function cut(text: string): string {
	return text.length <= LIMIT ? text : `${text.slice(0, LIMIT)}… [cut: ${text.length - LIMIT} more characters]`
}
