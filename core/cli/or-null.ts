import { CliError } from './contract.ts'
import type { ExitName } from './contract.ts'

type Failed = (error: CliError) => void

/** The response; null if the request fails with one of these exit codes. `failed` is called with the error. */
export async function orNull<T>(response: Promise<T>, exits: readonly ExitName[], failed?: Failed): Promise<T | null> {
	try {
		return await response
	} catch (error) {
		if (!(error instanceof CliError) || !exits.includes(error.exit)) throw error
		failed?.(error)
		return null
	}
}

/** Null if the token does not permit the request, or its plugin is switched off. */
export function permitted<T>(response: Promise<T>, failed?: Failed): Promise<T | null> {
	return orNull(response, ['denied', 'not_found'], failed)
}
