/** The time from the start of the process until it listens, and its idle memory, compared with an empty hapi server. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import { compare, inTurns } from './rounds.ts'
import { startSubject } from './subject.ts'
import type { Figure } from './table.ts'
import { residentMib } from './usage.ts'

/** Time for the work after the start to finish and its memory to be released. */
const SETTLE_MS = 3_000

interface Started {
	ready_ms: number
	resident: number
}

export async function start({ starts }: Effort): Promise<Figure[]> {
	const pairs = await inTurns<Started>(
		starts,
		async () => {
			await using gateway = await startSubject({ from: 'launcher' })
			await pause(SETTLE_MS)
			return { ready_ms: gateway.ready_ms, resident: residentMib(gateway.pid) }
		},
		async () => {
			const began = performance.now()
			await using bare = await startPeer(new URL('./peers/bare-hapi.ts', import.meta.url))
			await bare.ask('url')
			const ready_ms = performance.now() - began
			await pause(SETTLE_MS)
			return { ready_ms, resident: residentMib(bare.pid) }
		},
		1,
	)
	return [
		{
			metric: 'start until ready',
			unit: 'ms',
			...compare(pairs, (one) => one.ready_ms),
			goal: { of: 'ours', most: 420 },
		},
		{
			metric: 'memory idle, all processes',
			unit: 'MiB',
			...compare(pairs, (one) => one.resident),
			goal: { of: 'ours', most: 105 },
		},
	]
}
