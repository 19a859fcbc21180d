import { Fault } from '../errors.ts'

/**
 * Passes a body through as fast as it is read, up to `maxBytes`. `failed` converts an error for the reader. `ended` is called
 * once, however the body ends.
 */
export function boundedBody(
	body: ReadableStream<Uint8Array>,
	maxBytes: number,
	{ failed, ended }: { failed: (error: unknown) => unknown; ended: () => void },
): ReadableStream<Uint8Array> {
	const reader = body.getReader()
	let bytes = 0
	return new ReadableStream<Uint8Array>(
		{
			async pull(controller) {
				try {
					const { done, value } = await reader.read()
					if (done) {
						ended()
						return controller.close()
					}
					bytes += value.byteLength
					if (bytes > maxBytes) throw tooLarge(maxBytes)
					controller.enqueue(value)
				} catch (error) {
					const failure = failed(error)
					reader.cancel(failure).catch(() => {}) // it may have failed already
					ended()
					throw failure
				}
			},
			async cancel(reason) {
				await reader.cancel(reason).catch(() => {})
				ended()
			},
		},
		{ highWaterMark: 0 },
	)
}

/** The error for a response with a larger body. */
export function tooLarge(maxBytes: number): Fault {
	return new Fault('fetch_too_large', `the answer is larger than ${maxBytes} bytes`)
}
