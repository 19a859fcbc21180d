/** Programs that flood the host: more calls, larger calls and more log lines than the limits. */
import type { Hostile } from './program.ts'

const full = ['sandbox_memory', 'sandbox_timeout', 'sandbox_crash', 'skill_failed'] as const

export const floods: Hostile[] = [
	{ name: 'endless calls', code: 'for (;;) svc.primitive("echo", 1).catch(() => {})', ends: full },
	{
		name: 'endless awaited calls',
		code: 'for (;;) await svc.primitive("echo", 1)',
		ends: ['skill_failed', 'sandbox_timeout'],
	},
	{
		name: 'more pending calls than the limit',
		code: 'const all = await Promise.all(Array.from({ length: 300 }, (_, i) => svc.primitive("echo", i))); return all.reduce((a, b) => a + b)',
		ends: ['answers'],
		answer: 44850,
	},
	{
		name: 'more calls than the limit',
		code: 'const all = await Promise.allSettled(Array.from({ length: 1500 }, () => svc.primitive("echo", 1))); return all.filter((x) => x.status === "rejected").length',
		ends: ['answers'],
		answer: 500,
	},
	{
		name: 'a call that is too large',
		code: 'try { await svc.primitive("echo", "x".repeat(2e6)) } catch (e) { return e.code }',
		ends: ['answers'],
		answer: 'payload_too_large',
	},
	{
		name: 'large calls',
		code: 'let n = 0; for (;;) { try { await svc.primitive("echo", "x".repeat(1e6)) } catch (e) { return [n, e.code] } n++ }',
		ends: ['answers', 'sandbox_timeout', 'sandbox_memory'],
		answer: [10, 'payload_too_large'],
	},
	{ name: 'a call of hundreds of megabytes', code: 'await svc.primitive("echo", "x".repeat(5e8))', ends: full },
	{
		name: 'an address of hundreds of megabytes',
		code: 'await svc.fetch("https://x.example/" + "x".repeat(3e8))',
		ends: full,
	},
	{
		name: 'deeply nested arguments',
		code: 'let o = 1; for (let i = 0; i < 3000; i++) o = [o]; try { await svc.primitive("echo", o) } catch (e) { return e.code }',
		ends: ['answers'],
		answer: 'invalid_arguments',
	},
	{
		name: 'arguments that contain themselves',
		code: 'const o = {}; o.o = o; await svc.primitive("echo", o)',
		ends: ['skill_failed'],
	},
	{
		name: 'arguments that make another call',
		code: 'const o = { toJSON() { svc.primitive("echo", o).catch(() => {}); return 1 } }; await svc.primitive("echo", o)',
		ends: full,
	},
	{
		name: 'many log lines',
		code: 'for (let i = 0; i < 1e5; i++) svc.log(i); return "said"',
		ends: ['answers'],
		answer: 'said',
	},
	{
		name: 'large lines on the console',
		code: 'for (let i = 0; i < 1e4; i++) console.error("x".repeat(1e4)); return "said"',
		ends: ['answers'],
		answer: 'said',
	},
	{
		name: 'a log line of hundreds of megabytes',
		code: 'svc.log("x".repeat(5e8)); return 1',
		ends: [...full, 'answers'],
	},
	{
		name: 'log lines that log',
		code: 'const o = { toJSON() { svc.log(o); return 1 } }; svc.log(o); return "said"',
		ends: ['answers', 'skill_failed'],
		answer: 'said',
	},
	{ name: 'endless timers', code: 'for (;;) setTimeout(() => {}, 1e9)', ends: ['skill_failed'] },
	{
		name: 'endless timers, each cleared',
		code: 'for (;;) clearTimeout(setTimeout(() => {}, 1e9))',
		ends: ['skill_failed'],
	},
	{ name: 'a timer for years', code: 'setTimeout(() => {}, 1e12); return 1', ends: ['answers'], answer: 1 },
	{
		name: 'an awaited timer for years',
		code: 'await new Promise((r) => setTimeout(r, 1e12))',
		ends: ['sandbox_timeout'],
	},
	{
		name: 'clearing invalid timers',
		code: 'for (let i = -5; i < 1e5; i++) clearTimeout(i); clearTimeout({ valueOf: () => 1 }); clearTimeout("__proto__"); return 1',
		ends: ['answers'],
		answer: 1,
	},
	{
		name: 'microtasks full of calls after the answer',
		code: 'queueMicrotask(function f() { svc.primitive("echo", 1).then(f, () => {}) }); return 1',
		ends: ['answers'],
		answer: 1,
	},
	{
		name: 'URL.canParse with megabytes of text',
		code: 'const s = "x".repeat(2e7); for (let i = 0; i < 100; i++) URL.canParse(s); return 1',
		ends: [...full, 'answers'],
		answer: 1,
	},
	{
		name: 'nothing but brackets',
		code: `return ${'['.repeat(50_000)}`,
		ends: ['skill_invalid', 'sandbox_crash', 'sandbox_timeout'],
	},
	{
		name: 'nested functions',
		code: `return ${'()=>'.repeat(50_000)}1`,
		ends: ['skill_invalid', 'skill_failed', 'answers', 'sandbox_crash', 'sandbox_timeout', 'sandbox_memory'],
	},
	{
		name: 'nested templates',
		code: `return ${'`${'.repeat(20_000)}1${'}`'.repeat(20_000)}`,
		ends: ['skill_invalid', 'skill_failed', 'answers', 'sandbox_crash', 'sandbox_timeout', 'sandbox_memory'],
	},
	{
		name: 'a sum of many terms',
		code: `return 1${'+1'.repeat(100_000)}`,
		ends: ['skill_invalid', 'skill_failed', 'answers', 'sandbox_crash', 'sandbox_timeout', 'sandbox_memory'],
	},
]
