// SPDX-License-Identifier: BSD-3-Clause
#include "base/error.h"
#include "boot/configuration.h"
#include "tools/macadam/hang.h"
#include "tools/macadam/info.h"
#include "tools/macadam/model.h"
#include "tools/macadam/report.h"
#include "tools/macadam/trace.h"
#include "tools/macadam/tune.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace macadam::tools;

// Becomes the simulator, a program of its own beside this one: it is as large as the library.
void run_simulator(char** arguments) {
  const auto here = std::filesystem::canonical("/proc/self/exe").parent_path();
  const std::string program = here / "macadam-simulate";
  execv(program.c_str(), arguments);
  throw std::runtime_error(program + " cannot be started: " + std::strerror(errno) +
                           "; it is installed together with macadam");
}

void print_info(bool api) {
  const Installation installation = find_installation();
  std::fputs((api ? api_page(installation) : info_page(installation)).c_str(), stdout);
}

void print_model(const ModelQuestion& question) {
  const macadam::boot::Configuration configuration = macadam::boot::read_configuration();
  for (const std::string& warning : configuration.warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  std::fputs(model_page(question, configuration.settings).c_str(), stdout);
}

int tune_and_print(const TuneQuestion& question) {
  const TuneAnswer answer = tune(question);
  std::fputs(answer.page.c_str(), stdout);
  if (answer.error.empty()) return 0;
  std::fprintf(stderr, "macadam: %s\n", answer.error.c_str());
  return 1;
}

CLI::App* add_model(CLI::App& app, ModelQuestion& question) {
  CLI::App* const model = app.add_subcommand(
      "model", "Memory that a process needs for RDMA, by the number of ranks it is connected to");
  model->add_option("-n,--ranks", question.ranks, "Numbers of ranks")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  model->add_option("-r,--receive", question.receive, "How messages find memory")
      ->delimiter(',')
      ->check(CLI::IsMember({"ring", "credit", "shared", "mixed"}))
      ->capture_default_str();
  model
      ->add_option("--sends", question.sends,
                   "Message buffers in use for sends at the busiest moment")
      ->capture_default_str();
  model
      ->add_option("--buffers", question.buffers,
                   "Message buffers in use at the busiest moment, as reports count them")
      ->capture_default_str();
  model
      ->add_option("--inline", question.adapter.inline_bytes,
                   "Bytes that a request to the adapter carries in itself")
      ->capture_default_str();
  model
      ->add_option("--completion-depth", question.adapter.completion_depth,
                   "Entries of a completion queue of the adapter")
      ->check(CLI::Range(1024, 1 << 30))
      ->capture_default_str();
  CLI::Option* const driver = model->add_option(
      "--driver", question.driver, "Bytes that its driver holds for queues, as --measure tells");
  model
      ->add_flag("--measure", question.measure,
                 "The adapter of this machine, and what its driver holds")
      ->excludes(driver);
  model
      ->add_option(
          "--libfabric", question.peers,
          "Over libfabric instead: what its provider (FI_PROVIDER) holds, measured with so "
          "many processes of this machine")
      ->check(CLI::Range(2, 1000));
  model->add_flag("--json", question.json, "For programs");
  return model;
}

CLI::App* add_tune(CLI::App& app, TuneQuestion& question) {
  CLI::App* const tune = app.add_subcommand(
      "tune", "Measure this machine and keep the settings that suit it, in a file");
  tune->add_option("-o,--output", question.output,
                   "The file, if not " + macadam::boot::tuned_file());
  tune->add_flag("--print", question.only_print, "Write no file");
  tune->add_flag("--quick", question.quick, "Measure less, and less exactly");
  tune->add_option(
      "--network", question.network,
      "Also simulate collectives on several machines, on this network: a preset (macadam "
      "simulate --presets), or a JSON file");
  tune->add_flag("--despite-load", question.despite_load,
                 "Write the file even if other programs use this machine");
  return tune;
}

CLI::App* add_report(CLI::App& app, ReportQuestion& question) {
  CLI::App* const report = app.add_subcommand(
      "report", "Make an HTML page of the file that MACADAM_REPORT=file.json has written");
  report->add_option("FILE", question.file, "The report")->required();
  report->add_option("-o,--output", question.output,
                     "The page, if not beside the report under its name with .html");
  report->add_flag("--text", question.text, "Print it as mpiexec does");
  return report;
}

CLI::App* add_trace(CLI::App& app, TraceQuestion& question) {
  CLI::App* const trace = app.add_subcommand(
      "trace", "Make one timeline, for Perfetto or Chrome, of what MACADAM_TRACE=folder has left");
  trace->add_option("FOLDER", question.folder, "The folder")->required();
  trace->add_option("-o,--output", question.output,
                    "The timeline, if not trace.json in the folder");
  return trace;
}

CLI::App* add_hang(CLI::App& app, HangQuestion& question) {
  CLI::App* const hang = app.add_subcommand(
      "hang", "What the ranks on this machine wait for, of jobs of any launcher; they go on");
  hang->add_option("PROCESS", question.process, "A rank's process id; else all jobs of this user")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  return hang;
}

// The parser's text with an option as it was typed, where it begins with the first of its names.
std::string as_typed(const std::string& text, const CLI::App& command, int argc, char** argv) {
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    if (!text.starts_with(name + ":") && !text.starts_with(name + " ")) continue;
    for (int i = 1; i < argc; ++i) {
      const std::string word(argv[i]);
      const std::string typed = word.substr(0, word.find('='));
      if (typed.starts_with('-') && option->check_name(typed))
        return typed + text.substr(name.size());
    }
  }
  return text;
}

// The end of a command line that is wrong, or that asked for help.
int leave(const CLI::App& app, const CLI::Error& error, int argc, char** argv) {
  if (error.get_exit_code() == 0) return app.exit(error);
  std::string text = error.what();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && app.get_subcommands().empty()) {
    std::string names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      names += (names.empty() ? "" : ", ") + command->get_name();
    text =
        (argc > 1 ? "there is no command \"" + std::string(argv[1]) + "\"" : "no command given") +
        "; the commands are " + names;
  }
  const auto chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? "macadam" : "macadam " + chosen[0]->get_name();
  if (!chosen.empty()) text = as_typed(text, *chosen[0], argc, argv);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && argc > 0) {
    // The first word that was typed and not understood.
    const std::vector<std::string> extras = app.remaining(true);
    for (int i = 1; i < argc; ++i)
      if (std::ranges::find(extras, argv[i]) != extras.end()) {
        text = "it takes no \"" + std::string(argv[i]) + "\"";
        break;
      }
  }
  std::fprintf(stderr, "%s: %s\nRun %s --help for more.\n", command.c_str(), text.c_str(),
               command.c_str());
  return 2;
}

// Says so if not: the file may be full that the output goes to.
bool is_printed() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  std::fprintf(stderr, "macadam: the output could not be written: %s\n", std::strerror(errno));
  return false;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app("Questions to and about the MPI library Macadam", "macadam");
  app.require_subcommand(1);
  app.set_version_flag("--version,-V", "Macadam " MACADAM_VERSION);
  CLI::App* const info = app.add_subcommand(
      "info", "Version, transports, protocols by message size, settings with their values");
  bool api = false;
  info->add_flag("--api", api, "The functions of MPI instead, by chapter, and how many they are");
  CLI::App* const simulate = app.add_subcommand(
      "simulate", "Run an MPI program on a simulated RDMA network, in virtual time");
  simulate->prefix_command()->set_help_flag(); // all that follows is for the simulator
  ModelQuestion question;
  const CLI::App* const model = add_model(app, question);
  TuneQuestion tune_question;
  const CLI::App* const tuning = add_tune(app, tune_question);
  ReportQuestion report_question;
  const CLI::App* const reporting = add_report(app, report_question);
  TraceQuestion trace_question;
  const CLI::App* const tracing = add_trace(app, trace_question);
  HangQuestion hang_question;
  const CLI::App* const hanging = add_hang(app, hang_question);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Error& error) {
    return leave(app, error, argc, argv);
  }
  int status = 0;
  try {
    if (simulate->parsed())
      run_simulator(argv + 1);
    else if (model->parsed())
      print_model(question);
    else if (reporting->parsed())
      std::fputs(report(report_question, find_installation().report).c_str(), stdout);
    else if (hanging->parsed())
      std::fputs(hang(hang_question).c_str(), stdout);
    else if (tracing->parsed())
      std::fputs(trace(trace_question).c_str(), stdout);
    else if (tuning->parsed())
      status = tune_and_print(tune_question);
    else
      print_info(api);
  } catch (const macadam::base::Error& error) {
    std::fprintf(stderr, "macadam: %s\n", error.text.c_str());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "macadam: %s\n", error.what());
    return 1;
  }
  return is_printed() ? status : 1;
}
