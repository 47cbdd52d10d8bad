// The same in @huggingface/transformers:  node tests/readers/read.mjs OUT/jamo_fallback-*
import { AutoTokenizer, env } from "@huggingface/transformers";
import fs from "node:fs";
import path from "node:path";

const read = (...parts) => JSON.parse(fs.readFileSync(path.join(...parts), "utf8"));
env.allowRemoteModels = false;
for (const folder of process.argv.slice(2).map((name) => path.resolve(name))) {
  env.localModelPath = path.dirname(folder) + path.sep;
  const tokenizer = await AutoTokenizer.from_pretrained(path.basename(folder));
  const [sentences, expected] = [read(folder, "..", "sentences.json"), read(folder, "ids.json")];
  const wrong = sentences.filter((text, i) => tokenizer.encode(text).join() !== expected[i].join());
  console.log(`${path.basename(folder)}, JavaScript: ${sentences.length - wrong.length} of ${sentences.length}`);
  wrong.slice(0, 3).forEach((text) => console.log("  " + JSON.stringify(text)));
  if (wrong.length) process.exitCode = 1;
}
