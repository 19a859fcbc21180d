import { CliError } from './contract.ts'

/** Null if the token does not permit a request, or what answers it is switched off; `refused` is called with the reason. */
export async function permitted<T>(asked: Promise<T>, refused?: (error: CliError) => void): Promise<T | null> {
	try {
		return await asked
	} catch (error) {
		if (!(error instanceof CliError) || (error.exit !== 'denied' && error.exit !== 'not_found')) throw error
		refused?.(error)
		return null
	}
}
