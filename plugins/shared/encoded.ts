/** Serves public bytes that are compressed once, not for each request. */
import { promisify } from 'node:util'
import { deflate, gzip } from 'node:zlib'
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi'

export interface Source {
	bytes: Buffer
	etag: string
	/** Its media type. */
	type: string
}

/** The encodings that hapi would otherwise apply to each response. */
const encoders = new Map([
	['gzip', promisify(gzip)],
	['deflate', promisify(deflate)],
])

/** Returns a function that creates the response, in the client's preferred encoding. */
export function encoded({
	bytes,
	etag,
	type,
}: Source): (request: Pick<Request, 'info'>, h: Pick<ResponseToolkit, 'response'>) => Promise<ResponseObject> {
	const cache = new Map<string, Promise<Buffer>>()
	const encodedBy = (encoding: string): Promise<Buffer> | undefined => {
		const result = cache.get(encoding) ?? encoders.get(encoding)?.(bytes)
		if (result) cache.set(encoding, result)
		return result
	}
	return async (request, h) => {
		const encoding = request.info.acceptEncoding
		const compressed = await encodedBy(encoding)
		const response = h.response(compressed ?? bytes)
		if (compressed) response.compressed(encoding)
		return response.type(type).etag(etag).vary('accept-encoding').header('cache-control', 'no-cache')
	}
}
