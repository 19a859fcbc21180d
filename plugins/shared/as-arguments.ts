import { Fault, isFault } from '../../core/errors.ts'

/** For a tool that calls what a route calls too: what is wrong with the request is wrong with the tool's arguments. */
export async function asArguments<T>(work: () => Promise<T>): Promise<T> {
	try {
		return await work()
	} catch (error) {
		if (isFault(error, 'invalid_request')) throw new Fault('invalid_arguments', error.message, { cause: error })
		throw error
	}
}
