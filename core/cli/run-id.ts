/** Runs by the partial ids that users type. */
import { CliError } from './contract.ts'
import type { Cli } from './contract.ts'
import { partOfId, shortId, wholeId } from './short-ids.ts'

/** Number of newest runs that tab completion offers. */
const RUNS = 50

/** The id of the run with this id, or whose id begins or ends with it. Throws a `CliError` if several match, or none. */
export async function runIdOf({ api }: Cli, typed: string): Promise<string> {
	if (wholeId.test(typed)) return typed
	if (!partOfId.test(typed))
		throw new CliError(
			'not_found',
			`"${typed}" is not the id of a run; give at least 4 characters of one that "svc runs list" shows`,
		)
	const query = new URLSearchParams({ id: typed.toLowerCase(), limit: '2' })
	const { runs } = await api.request<{ runs: { run_id: string }[] }>('GET', `/v1/runs?${query.toString()}`)
	const [only, other] = runs
	if (only === undefined) throw new CliError('not_found', `no run has an id that begins or ends with "${typed}"`)
	if (other !== undefined)
		throw new CliError(
			'usage',
			`several runs have ids that begin or end with "${typed}", such as ${only.run_id} and ${other.run_id}; type more characters`,
		)
	return only.run_id
}

/** Ends of ids, which differ most; whole ids if the user began to type one. */
export async function runCandidates({ api }: Cli, prefix: string, signal: AbortSignal): Promise<string[]> {
	const { runs } = await api.request<{ runs: { run_id: string }[] }>('GET', `/v1/runs?limit=${RUNS}`, undefined, {
		signal,
	})
	const ids = runs.map((one) => one.run_id)
	const ends = ids.map(shortId)
	return ends.some((end) => end.startsWith(prefix)) ? ends : ids
}
