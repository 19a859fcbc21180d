/** A hostile program, and how its call may end. */
export interface Hostile {
	name: string
	/** The body of `async (args, svc) => {…}`; a whole module if it has an `export default`. */
	code: string
	/** Codes with which its call may fail; `answers`: it may also complete. */
	ends: readonly Ending[]
	/** The answer in this case. Default: any answer that does not contain the canary. */
	answer?: unknown
}

export type Ending =
	| 'answers'
	| 'skill_failed'
	| 'skill_invalid'
	| 'sandbox_timeout'
	| 'sandbox_memory'
	| 'sandbox_crash'

export function moduleOf({ code }: Hostile): string {
	return /^export default/m.test(code) ? code : `export default async (args, svc) => {\n${code}\n}`
}
