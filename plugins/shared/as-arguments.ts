import { Fault, isFault } from '../../core/errors.ts'

/** For a tool that shares a function with a route: converts `invalid_request` to `invalid_arguments`. */
export async function asArguments<T>(work: () => Promise<T>): Promise<T> {
	try {
		return await work()
	} catch (error) {
		if (isFault(error, 'invalid_request')) throw new Fault('invalid_arguments', error.message, { cause: error })
		throw error
	}
}
