/** Public bytes that may be requested repeatedly: compressed once, not for each request. */
import { promisify } from 'node:util'
import { deflate, gzip } from 'node:zlib'
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi'

export interface Source {
	bytes: Buffer
	etag: string
	/** Its media type. */
	type: string
}

/** Encodings that hapi would apply to each response again. */
const encoders = new Map([
	['gzip', promisify(gzip)],
	['deflate', promisify(deflate)],
])

/** Returns the bytes, in the client's preferred encoding. */
export function encoded({
	bytes,
	etag,
	type,
}: Source): (request: Pick<Request, 'info'>, h: Pick<ResponseToolkit, 'response'>) => Promise<ResponseObject> {
	const made = new Map<string, Promise<Buffer>>()
	const madeBy = (encoding: string): Promise<Buffer> | undefined => {
		const one = made.get(encoding) ?? encoders.get(encoding)?.(bytes)
		if (one) made.set(encoding, one)
		return one
	}
	return async (request, h) => {
		const encoding = request.info.acceptEncoding
		const shorter = await madeBy(encoding)
		const response = h.response(shorter ?? bytes)
		if (shorter) response.compressed(encoding)
		return response.type(type).etag(etag).vary('accept-encoding').header('cache-control', 'no-cache')
	}
}
