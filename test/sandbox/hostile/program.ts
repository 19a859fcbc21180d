/** One program that means harm, and how its call may end. */
export interface Hostile {
	name: string
	/** The body of `async (args, svc) => {…}`; a whole module where it has an `export default`. */
	code: string
	/** Codes that its call may fail with; `answers` where it may as well just answer. */
	ends: readonly Ending[]
	/** What it answers then; what is not given may be anything that holds no canary. */
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
