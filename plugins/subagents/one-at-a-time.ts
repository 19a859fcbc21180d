/** Kept apart from any instance of the plugin, since one may begin what the next goes on with. */
const under = new Map<string, Promise<void>>()

/** Does `work` once all earlier work of that name has settled. */
export async function oneAtATime(name: string, work: () => Promise<void>): Promise<void> {
	const before = under.get(name)
	const mine = (async () => {
		await before?.catch(() => {})
		await work()
	})()
	under.set(name, mine)
	try {
		await mine
	} finally {
		if (under.get(name) === mine) under.delete(name)
	}
}
