/** The progress of an upgrade, and the remaining time. */

export interface UpgradeProgress {
	/** 0-100. */
	percent: number
	/** Null until enough is done for an estimate. */
	remaining_s: number | null
	/** Such as `43 % (memories), about 12 s left`. */
	text: string
}

/** The rate of a shorter time is too inaccurate. */
const LEAST_MS = 500

export function openProgress(clock = () => performance.now()) {
	let begun: { at: number; done: number } | undefined
	let done = 0
	let all = 0
	let what = 'backup'

	return {
		/** `kind`: what the records are, such as `memories`. */
		reached(records: number, total: number, kind: string): void {
			begun ??= { at: clock(), done: records }
			done = records
			all = total
			what = kind
		},
		now(): UpgradeProgress {
			const percent = all === 0 ? 0 : Math.floor((100 * done) / all)
			const took = begun ? clock() - begun.at : 0
			const own = begun ? done - begun.done : 0
			const remaining_s = took < LEAST_MS || own === 0 ? null : Math.ceil(((all - done) * took) / own / 1000)
			const left = remaining_s === null ? '' : `, about ${remaining_s} s left`
			return { percent, remaining_s, text: `${percent} % (${what})${left}` }
		},
	}
}
