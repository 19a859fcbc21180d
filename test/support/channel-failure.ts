import type { ChannelError } from '../../plugins/channels/adapter.ts'

/** The error of a channel adapter's call. Throws if the call succeeds. */
export async function failure(call: Promise<unknown> | undefined): Promise<ChannelError> {
	try {
		await call
	} catch (error) {
		return error as ChannelError
	}
	throw new Error('the call did not fail')
}
