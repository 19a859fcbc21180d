import { CliError } from './contract.ts'

/** Null if the token does not permit the request, or its plugin is switched off; `refused` is called with the error. */
export async function permitted<T>(response: Promise<T>, refused?: (error: CliError) => void): Promise<T | null> {
	try {
		return await response
	} catch (error) {
		if (!(error instanceof CliError) || (error.exit !== 'denied' && error.exit !== 'not_found')) throw error
		refused?.(error)
		return null
	}
}
