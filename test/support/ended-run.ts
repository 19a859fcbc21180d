import { send } from './gateway.ts'
import type { Answer } from './gateway.ts'
import { eventually } from './wait.ts'

/**
 * Waits until a run has ended, and returns it. Throws if the run cannot be read. Polls the gateway at `url`, so the run may have ended
 * before; with a stream of its events, use `ended` of runs.ts.
 */
export function endedRun(url: string, run_id: string, token?: string): Promise<Answer> {
	return eventually(
		async () => {
			const { status, body } = await send(`${url}/v1/runs/${run_id}`, 'GET', token === undefined ? {} : { token })
			if (status !== 200) throw new Error(`the run was not read: ${status} ${JSON.stringify(body)}`)
			return body
		},
		({ ended_at }) => ended_at !== null,
	)
}
