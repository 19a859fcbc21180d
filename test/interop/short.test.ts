/** The clients that the gateway's own packages include; `npm run interop` tries all. */
import t from 'tap'
import { openPlace } from './place.ts'
import type { Client } from './table.ts'

const load = async (path: string): Promise<unknown> => import(String(new URL(path, import.meta.url)))
const { createGateway } = (await load('../../core/client/index.ts')) as { createGateway: unknown }
const place = await openPlace(createGateway)
t.teardown(() => place[Symbol.asyncDispose]())
t.jobs = 4

for (const file of ['openai', 'mcp-sdk', 'own']) {
	const { name, features } = (await load(`clients/${file}.mjs`)) as Client
	for (const [feature, work] of Object.entries(features))
		void t.test(`${name}: ${feature}`, async (t) => t.equal(await work(place), undefined))
}
