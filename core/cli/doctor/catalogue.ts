/** All checks in the order of the report: first those of what everything depends on, then those of plugins. */
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
import { restoreChecks } from './checks/restore.ts'
import { storeChecks } from './checks/store.ts'
import { upgradeChecks } from './checks/upgrade.ts'
import type { Check } from './contract.ts'
import { doctorFilesByPlugin } from './doctor-files.ts'
import { isOn } from '../../host/desired-state.ts'
import { thirdPartyChecks } from './third-party.ts'
import type { HomeAndEnv } from './third-party.ts'

/** `place`: a home; the checks of its third-party plugins are included. */
export async function checksOf(place?: HomeAndEnv): Promise<Check[]> {
	const files = await doctorFilesByPlugin()
	const own = [
		programChecks,
		nativeChecks([...files.values()]),
		modeChecks,
		homeChecks,
		holderChecks,
		configChecks,
		portChecks,
		diskChecks,
		limitChecks,
		storeChecks,
		upgradeChecks,
	]
	const builtIn = [...files].flatMap(([name, { checks = [] }]) => checks.map((check) => whereOn(name, check)))
	return [...own.flat(), ...builtIn, ...(place ? await thirdPartyChecks(place) : []), ...pluginChecks, ...restoreChecks]
}

function whereOn(plugin: string, check: Check): Check {
	return { ...check, run: async (context) => (isOn(await context.config(), plugin) ? check.run(context) : []) }
}
