/** Every check, in the order in which they are shown: first what everything stands on, then what plugins know. */
import { access, readdir } from 'node:fs/promises'
import type { Config } from '../../config/types.ts'
import { backupChecks } from './checks/backup.ts'
import { configChecks } from './checks/config.ts'
import { diskChecks } from './checks/disk.ts'
import { holderChecks } from './checks/holder.ts'
import { homeChecks } from './checks/home.ts'
import { limitChecks } from './checks/limits.ts'
import { modeChecks } from './checks/modes.ts'
import { nativeChecks } from './checks/native.ts'
import { pluginChecks } from './checks/plugins.ts'
import { portChecks } from './checks/ports.ts'
import { programChecks } from './checks/program.ts'
import { storeChecks } from './checks/store.ts'
import type { Check, Expert } from './contract.ts'
import { isOn } from '../wish.ts'

export async function checksOf(): Promise<Check[]> {
	const own = [
		programChecks,
		nativeChecks,
		modeChecks,
		homeChecks,
		holderChecks,
		configChecks,
		portChecks,
		diskChecks,
		limitChecks,
		storeChecks,
	]
	const experts = await allExperts()
	const theirs = experts.flatMap(({ name, expert }) => expert.checks.map((check) => whereOn(name, check)))
	return [...own.flat(), ...theirs, ...pluginChecks, ...backupChecks]
}

export async function expertsFor(config: Config): Promise<Expert[]> {
	return (await allExperts()).filter(({ name }) => isOn(config, name)).map(({ expert }) => expert)
}

function whereOn(plugin: string, check: Check): Check {
	return {
		...check,
		run: async (patient) => (isOn(await patient.config(), plugin) ? check.run(patient) : []),
	}
}

const folder = new URL('../../plugins/', import.meta.url)
let experts: Promise<{ name: string; expert: Expert }[]> | undefined

function allExperts(): Promise<{ name: string; expert: Expert }[]> {
	return (experts ??= readExperts())
}

/** Found by their file, since core knows no plugin. They must be light: what is heavy they load when they look. */
async function readExperts(): Promise<{ name: string; expert: Expert }[]> {
	const names = (await readdir(folder)).toSorted()
	const found = await Promise.all(
		names.map(async (name) => {
			const file = new URL(`${name}/doctor.ts`, folder)
			const isThere = await access(file).then(
				() => true,
				() => false,
			)
			if (!isThere) return []
			const { default: expert } = (await import(file.href)) as { default: Expert }
			return { name, expert }
		}),
	)
	return found.flat()
}
