import { Fault } from '../../core/errors.ts'
import { tooLarge } from './write-blob.ts'

/** Decodes base64, or a `data:` URL. Throws `invalid_request`, `payload_too_large`. */
export function decodeData(data: string, max_bytes: number): { bytes: Uint8Array; media_type?: string } {
	if (!/^data:/i.test(data)) return { bytes: base64(data, max_bytes) }
	const comma = data.indexOf(',')
	const [media_type = '', ...parameters] = data.slice('data:'.length, Math.max(0, comma)).split(';')
	if (comma < 0 || comma > 1_000)
		throw new Fault('invalid_request', 'the data: URL has no data; it must read data:TYPE;base64,DATA')
	const body = data.slice(comma + 1)
	const about = media_type === '' ? {} : { media_type }
	if (parameters.some((parameter) => parameter.trim().toLowerCase() === 'base64'))
		return { ...about, bytes: base64(body.includes('%') ? unescaped(body) : body, max_bytes) }
	return { ...about, bytes: Buffer.from(unescaped(body)) }
}

function base64(text: string, max_bytes: number): Uint8Array {
	if (text.length * 0.75 > max_bytes + 1024) throw tooLarge(max_bytes)
	const padding = text.indexOf('=')
	// Two simple expressions, which take linear time. One that allows blanks in two places would take quadratic time.
	if (/[^A-Za-z0-9+/_\-\s=]/.test(text) || (padding >= 0 && /[^=\s]/.test(text.slice(padding))))
		throw new Fault('invalid_request', 'the data is not base64; encode the bytes of the file as base64')
	return Buffer.from(text, 'base64')
}

function unescaped(text: string): string {
	try {
		return decodeURIComponent(text)
	} catch (error) {
		throw new Fault('invalid_request', 'the data: URL contains an invalid escape such as %zz', { cause: error })
	}
}
