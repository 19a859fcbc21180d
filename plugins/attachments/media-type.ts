/**
 * Detects the media type of bytes by their beginning. The declared type counts only for kinds of text, for containers (of sound
 * or video, and zip archives), and for unknown binary data. Markup that a browser would execute is never an image.
 */
import { HEAD_BYTES, isTextType, textAtBeginning } from '../../sandbox/text-type.ts'
import type { Attachment } from '../../core/protocol.ts'

interface FileDescription {
	name?: string | undefined
	media_type?: string | undefined
}

export function mediaTypeOf(head: Uint8Array, about: FileDescription = {}): string {
	const bytes = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, HEAD_BYTES))
	const found = SIGNATURES.find(([at, signature]) => bytes.subarray(at, at + signature.length).equals(signature))?.[2]
	if (typeof found === 'string') return found
	const declared = (about.media_type ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
	if (found) return found(bytes, declared)
	const text = textAtBeginning(bytes)
	if (text === undefined) return BINARY.test(declared) ? declared : 'application/octet-stream'
	return textTypeOf(text, declared, about.name ?? '')
}

/** The type of a content part with this media type. */
export function partTypeOf(media_type: string): Attachment['type'] {
	if (IMAGES.has(media_type)) return 'image'
	return media_type.startsWith('audio/') ? 'audio' : 'file'
}

const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/heic', 'image/avif'])

type Signature = readonly [at: number, signature: Buffer, type: string | ((bytes: Buffer, declared: string) => string)]

const latin = (text: string): Buffer => Buffer.from(text, 'latin1')

const SIGNATURES: readonly Signature[] = [
	[0, latin('\x89PNG\r\n\x1a\n'), 'image/png'],
	[0, latin('\xff\xd8\xff'), 'image/jpeg'],
	[0, latin('GIF87a'), 'image/gif'],
	[0, latin('GIF89a'), 'image/gif'],
	[0, latin('RIFF'), (bytes) => RIFF[bytes.toString('latin1', 8, 12)] ?? 'application/octet-stream'],
	[0, latin('%PDF-'), 'application/pdf'],
	[0, latin('OggS'), (_, declared) => (declared.startsWith('video/') ? 'video/ogg' : 'audio/ogg')],
	[0, latin('ID3'), 'audio/mpeg'],
	[0, latin('\xff\xfb'), 'audio/mpeg'],
	[0, latin('\xff\xf3'), 'audio/mpeg'],
	[0, latin('\xff\xf2'), 'audio/mpeg'],
	[0, latin('\xff\xf1'), 'audio/aac'],
	[0, latin('\xff\xf9'), 'audio/aac'],
	[0, latin('fLaC'), 'audio/flac'],
	[4, latin('ftyp'), mp4],
	[0, latin('\x1aE\xdf\xa3'), (_, declared) => (declared.startsWith('audio/') ? 'audio/webm' : 'video/webm')],
	[0, latin('PK\x03\x04'), (_, declared) => (/^application\/(vnd|epub)/.test(declared) ? declared : 'application/zip')],
	[0, latin('\x1f\x8b'), 'application/gzip'],
]

const RIFF: Readonly<Record<string, string>> = { WEBP: 'image/webp', WAVE: 'audio/wav', 'AVI ': 'video/x-msvideo' }

function mp4(bytes: Buffer, declared: string): string {
	const brand = bytes.toString('latin1', 8, 12)
	// Brands of single images and of image sequences.
	if (/^(he[iv][cxms]|mif1|msf1)$/.test(brand)) return 'image/heic'
	if (/^avi[fs]$/.test(brand)) return 'image/avif'
	return /^M4[AB] $/.test(brand) || declared.startsWith('audio/') ? 'audio/mp4' : 'video/mp4'
}

/** Declared types that are accepted for unknown binary data: browsers do not execute them. */
const BINARY = /^(application\/(?!.*(html|xml|javascript|ecmascript|json))|video\/|font\/)[a-z0-9.+-]{1,100}$/

function textTypeOf(text: string, declared: string, name: string): string {
	const beginning = text.slice(0, 512).trimStart().toLowerCase()
	if (/^(<!doctype html|<html|<script|<body|<head|<iframe)/.test(beginning)) return 'text/html'
	if (/^(<!doctype svg[^>]*>\s*)?<svg/.test(withoutProlog(beginning))) return 'image/svg+xml'
	if (isTextType(declared) && /^[a-z0-9./+-]{1,80}$/.test(declared)) return declared
	return BY_ENDING[/\.([a-z0-9]{1,8})$/i.exec(name)?.[1]?.toLowerCase() ?? ''] ?? 'text/plain'
}

/** Removes one comment at a time, since a regular expression for all comments can take exponential time. */
function withoutProlog(markup: string): string {
	let rest = markup.replace(/^<\?xml[^>]*>/, '').trimStart()
	while (rest.startsWith('<!--')) {
		const end = rest.indexOf('-->', '<!--'.length)
		if (end < 0) break
		rest = rest.slice(end + '-->'.length).trimStart()
	}
	return rest
}

const BY_ENDING: Readonly<Record<string, string>> = {
	csv: 'text/csv',
	html: 'text/html',
	json: 'application/json',
	md: 'text/markdown',
	svg: 'image/svg+xml',
	xml: 'application/xml',
	yaml: 'application/yaml',
	yml: 'application/yaml',
}
