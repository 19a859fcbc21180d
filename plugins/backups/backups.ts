import { Cron } from 'croner'
import type { BackupInfo } from '../../core/backup/list.ts'
import { Fault, messageOf } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { emitOrLog } from '../shared/emit-or-log.ts'
import type { Backups, BackupSettings } from './contract.ts'

type BackupContext = Pick<
	Context<BackupSettings>,
	'config' | 'gateway' | 'snapshots' | 'signal' | 'log' | 'emit' | 'trouble' | 'defer'
>

/** `clock`: for tests. */
export function openBackups(ctx: BackupContext, clock: typeof takeOnSchedule = takeOnSchedule): Backups {
	const { config, gateway, log } = ctx
	const { folder } = config
	let running: Promise<BackupInfo> | undefined

	const take = async (trigger: BackupInfo['trigger']): Promise<BackupInfo> => {
		const { createBackup } = await import('../../core/backup/create.ts')
		try {
			const made = await createBackup({
				home: gateway.home,
				folder,
				snapshots: ctx.snapshots,
				trigger,
				include_key: config.include_key,
				min_free_mib: config.min_free_mib,
				signal: ctx.signal,
			})
			await emitOrLog(ctx, { event_type: 'backup.created', payload: payloadOf(made) })
			return made
		} catch (error) {
			await emitOrLog(ctx, { event_type: 'backup.failed', payload: { trigger, message: messageOf(error) } })
			throw error
		}
	}

	const create: Backups['create'] = async (trigger) => {
		if (running) throw new Fault('conflict', 'a backup is already in progress; wait until it is complete')
		running = take(trigger)
		try {
			return await running
		} finally {
			running = undefined
		}
	}

	const list: Backups['list'] = async () => (await import('../../core/backup/list.ts')).listBackups(folder)

	const remove = async (id: string, reason: 'request' | 'retention'): Promise<void> => {
		const { removeBackup } = await import('../../core/backup/list.ts')
		await removeBackup(folder, id)
		await emitOrLog(ctx, { event_type: 'backup.removed', payload: { backup_id: id, reason } })
	}

	/** Removes scheduled backups of this home beyond `keep`, never one made on request. */
	const removeOld = async (origin: string): Promise<void> => {
		const { backups } = await list()
		const scheduled = backups.filter((one) => one.trigger === 'schedule' && one.origin === origin)
		// Backups with a future time (the clock was ahead) go first: as the newest ones they would displace every new backup.
		const [future, past] = [scheduled.filter(isInFuture), scheduled.filter((one) => !isInFuture(one))]
		for (const { id } of [...future, ...past].slice(0, -config.keep)) await remove(id, 'retention')
	}

	const takeScheduled = async (): Promise<void> => {
		try {
			const { origin } = await create('schedule')
			await removeOld(origin)
			ctx.trouble(null)
		} catch (error) {
			if (ctx.signal.aborted) return
			const message = `the scheduled backup failed: ${messageOf(error)}`
			log.error({ err: error }, message)
			ctx.trouble(message)
		}
	}

	const schedule = clock(config, takeScheduled)
	ctx.defer(() => schedule.stop(), 'schedule of backups')
	// `ctx.signal` has aborted before: a backup in progress stops and deletes its unfinished files.
	ctx.defer(() => running?.catch(() => {}), 'backup in progress')
	return { folder, create, list, remove: (id) => remove(id, 'request'), next: () => schedule.next() }
}

/**
 * Calls `take` when a backup is due, until `stop`. Skips it if the previous one is still in progress. Backups that were due while no
 * gateway ran are not taken later. `next`: when the next one is due, ISO 8601; null without a schedule.
 */
export function takeOnSchedule(
	{ schedule, timezone }: Pick<BackupSettings, 'schedule' | 'timezone'>,
	take: () => Promise<void>,
): { next(): string | null; stop(): void } {
	if (schedule === null) return { next: () => null, stop: () => {} }
	const cron = new Cron(schedule, { ...(timezone !== null && { timezone }), unref: true, protect: true }, take)
	return { next: () => cron.nextRun()?.toISOString() ?? null, stop: () => cron.stop() }
}

function isInFuture({ created_at }: BackupInfo): boolean {
	return Date.parse(created_at) > Date.now()
}

function payloadOf({ id, bytes, records, head, trigger, includes_key }: BackupInfo): Record<string, unknown> {
	return { backup_id: id, bytes, records, head, trigger, includes_key }
}
